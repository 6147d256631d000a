// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import Foundation
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import CountersignTestOrigin
import Testing

@testable import CountersignChannelTLS
@testable import CountersignTLS

/// A client with ``TLSHandler`` on a loopback connection.
final class LoopbackClient: Sendable {
    let channel: any Channel
    let log: NIOLockedValueBox<Recorder.Log>

    init(
        port: Int, context: TLSClientContext, answer: Recorder.Answer = .never,
        trustReply: Recorder.TrustReply? = nil, halfCloses: Bool = true, autoRead: Bool = true
    ) throws {
        let box = NIOLockedValueBox<NIOLockedValueBox<Recorder.Log>?>(nil)
        channel = try ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.allowRemoteHalfClosure, value: halfCloses)
            .channelOption(.autoRead, value: autoRead)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let tls = try TLSHandler(
                        client: context, host: "localhost", alpn: ["http/1.1"], session: nil,
                        asksAboutTrust: trustReply != nil)
                    let recorder = Recorder(tls, answer: answer, trustReply: trustReply ?? .never)
                    box.withLockedValue { $0 = recorder.log }
                    try channel.pipeline.syncOperations.addHandlers([tls, recorder])
                }
            }
            .connect(host: "127.0.0.1", port: port).wait()
        log = try #require(box.withLockedValue { $0 })
    }

    deinit { channel.close(promise: nil) }

    var heard: [Heard] { log.withLockedValue { $0.heard } }

    /// Waits for `entry`; false if it does not come in time.
    func hears(_ entry: Heard, seconds: Double = patience) -> Bool {
        poll(seconds: seconds) { heard.contains(entry) ? true : nil } ?? false
    }

    /// Waits until the received plaintext contains `text`.
    func reads(_ text: String, seconds: Double = patience) -> Bool {
        poll(seconds: seconds) {
            heard.contains { entry in
                if case .bytes(let bytes) = entry { bytes.contains(text) } else { false }
            } ? true : nil
        } ?? false
    }

    func write(_ text: String) { channel.writeAndFlush(ByteBuffer(string: text), promise: nil) }
}

/// `openssl s_server` on a free loopback port, with a pipe to its standard input.
final class OpenSSLServer {
    let port: Int
    let child: ChildProcess
    private let folder: TemporaryFolder
    private let keyboard: Int32

    /// Sends the chain of `name`. `arguments` are added to the command.
    convenience init(_ arguments: [String], showing name: String = "origin-ec") throws {
        let chain = name == "origin-intermediate-leaf" ? ["-cert_chain", Fixture.path("origin-intermediate")] : []
        try self.init(
            certificate: Fixture.path(name), key: Fixture.path(name + ".key"), arguments: chain + arguments)
    }

    init(certificate: String, key: String, arguments: [String]) throws {
        folder = try TemporaryFolder("tls")
        let pipe = folder.file("keyboard")
        try #require(mkfifo(pipe, 0o600) == 0)
        keyboard = open(pipe, O_RDWR | O_CLOEXEC)
        let own = ["s_server", "-accept", "127.0.0.1:0", "-cert", certificate, "-key", key]
        child = try ChildProcess(
            "/usr/bin/openssl", own + arguments, input: pipe, capture: folder.file("server"))
        port = try #require(Int(try child.line(after: "ACCEPT 127.0.0.1:")))
    }

    deinit {
        child.stop()
        close(keyboard)
    }

    /// Writes a line to its standard input.
    func type(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = Foundation.write(keyboard, bytes, bytes.count)
    }

    /// Waits until its output contains `text`.
    func says(_ text: String, seconds: Double = patience) -> Bool {
        poll(seconds: seconds) { said.contains(text) ? true : nil } ?? false
    }

    var said: String { child.output + child.errorOutput }
}
