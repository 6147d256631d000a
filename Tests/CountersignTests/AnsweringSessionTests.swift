// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import FoundationNetworking
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import Countersign
@testable import CountersignURLSession

/// AnsweringSession through a proxy in the same process. `LibraryTransferTests` measures its memory.
@Suite(.waiting) struct AnsweringSessionTests {
    private static func home() throws -> LibraryHome {
        let origins = try LibraryOrigins.shared
        return try LibraryHome(origins.sites, identities: ["laptop"], anchors: [try TestPKI.shared.originAnchor])
    }

    private static func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    private static func post(_ url: String) throws -> URLRequest {
        var request = URLRequest(url: try Self.url(url))
        request.httpMethod = "POST"
        return request
    }

    private func withSession(
        _ home: LibraryHome, _ configuration: URLSessionConfiguration = .ephemeral,
        _ body: (AnsweringSession) async throws -> Void
    ) async throws {
        try await withProxy(home) { proxy, _ in
            try await body(try await AnsweringSession(configuration: configuration, through: proxy))
        }
    }

    private func status(_ response: URLResponse) -> Int? { (response as? HTTPURLResponse)?.statusCode }

    // MARK: Sites

    @Test(arguments: [
        ("basic", "/basic/index", "apache basic/index\n"), ("ntlm", "/file", "a file\n"),
        ("certificate", "/who", "TLSv1.3 CN=laptop,O=Test\n"), ("open", "/who", "open https\n"),
    ])
    func eachMethodReachesEachKindOfSite(_ kind: String, _ path: String, _ text: String) async throws {
        let origins = try LibraryOrigins.shared
        let sites = [
            "basic": origins.basicURL, "ntlm": origins.ntlmURL, "certificate": origins.certificateURL,
            "open": origins.openURL,
        ]
        let url = try Self.url(sites[kind, default: ""] + path)
        try await withSession(try Self.home()) { session in
            let (data, response) = try await session.data(from: url)
            #expect(String(decoding: data, as: UTF8.self) == text)
            #expect(status(response) == 200)
            let (file, _) = try await session.download(from: url)
            #expect(TextFile.text(file.path) == text)
            try FileManager.default.removeItem(at: file)
            let (bytes, _) = try await session.bytes(from: url)
            #expect(try await bytes.reduce(into: []) { $0.append($1) } == Array(text.utf8))
        }
    }

    @Test func anUnansweredChallengeIsDeliveredUnchanged() async throws {
        let url = try Self.url(try LibraryOrigins.shared.unlistedURL + "/basic/index")
        try await withSession(try Self.home()) { session in
            let (_, response) = try await session.data(from: url)
            let http = try #require(response as? HTTPURLResponse)
            #expect(http.statusCode == 401)
            #expect(http.value(forHTTPHeaderField: "WWW-Authenticate") == "Basic realm=\"Apache\"")
        }
    }

    @Test func anUntrustedServerIsTheSameErrorAsForURLSession() async throws {
        let url = try Self.url(try LibraryOrigins.shared.untrustedURL + "/file")
        try await withSession(try Self.home()) { session in
            for attempt in 0..<3 {
                let error = await #expect(throws: URLError.self) {
                    switch attempt {
                    case 0: _ = try await session.data(from: url)
                    case 1: _ = try await session.download(from: url)
                    default: _ = try await session.bytes(from: url)
                    }
                }
                #expect(error?.code == .serverCertificateUntrusted)
            }
        }
    }

    @Test func aURLThatIsNotHTTPIsUnsupported() async throws {
        try await withSession(try LibraryHome("")) { session in
            let error = await #expect(throws: URLError.self) {
                _ = try await session.data(from: Self.url("ftp://127.0.0.1/"))
            }
            #expect(error?.code == .unsupportedURL)
        }
    }

    // MARK: Uploads

    @Test(arguments: [nil, 3_000_000] as [Int64?])
    func thePartsOfASequenceBecomeOneRequest(_ length: Int64?) async throws {
        let request = try Self.post(try LibraryOrigins.shared.ntlmURL + "/echo")
        let parts = [Data(repeating: 1, count: 2_900_000), Data(), Data(repeating: 2, count: 100_000)]
        let content = AsyncStream { continuation in
            for part in parts { continuation.yield(part) }
            continuation.finish()
        }
        let progress = Mutex<[TransferProgress]>([])
        try await withSession(try Self.home()) { session in
            let (data, _) = try await session.upload(for: request, from: content, contentLength: length) { now in
                progress.withLock { $0.append(now) }
            }
            let echo = String(decoding: data, as: UTF8.self)
            #expect(echo.contains("\"length\": 3000000,"), "\(echo)")
        }
        let seen = progress.withLock { $0 }
        #expect(seen.map(\.countOfBytesSent).sorted() == seen.map(\.countOfBytesSent))
        #expect(seen.last == TransferProgress(countOfBytesSent: 3_000_000, countOfBytesExpectedToSend: length))
        #expect(seen.count > 20)
    }

    @Test(arguments: [2_000, 200_000]) func aBodyInMemoryIsSent(_ count: Int) async throws {
        let request = try Self.post(try LibraryOrigins.shared.ntlmURL + "/echo")
        try await withSession(try Self.home()) { session in
            let (data, _) = try await session.upload(for: request, from: Data(repeating: 3, count: count))
            #expect(String(decoding: data, as: UTF8.self).contains("\"length\": \(count),"))
        }
    }

    @Test(arguments: [9, 11]) func contentOfAnotherLengthThanAnnouncedIsAnError(_ count: Int) async throws {
        let origin = try await PlainOrigin { _ in nil }
        try await withSession(try LibraryHome("")) { session in
            let content = AsyncStream { continuation in
                continuation.yield(Data(repeating: 65, count: count))
                continuation.finish()
            }
            let error = await #expect(throws: URLError.self) {
                _ = try await session.upload(for: Self.post(origin.site), from: content, contentLength: 10)
            }
            #expect(error?.code == .requestBodyStreamExhausted)
            #expect(error?.localizedDescription.contains("10 bytes") == true)
        }
        try await origin.stop()
    }

    private struct Broken: Error {}

    @Test func anErrorOfTheSequenceEndsTheUpload() async throws {
        let origin = try await PlainOrigin { _ in nil }
        try await withSession(try LibraryHome("")) { session in
            let content = AsyncThrowingStream<Data, any Error> { continuation in
                continuation.yield(Data("part".utf8))
                continuation.finish(throwing: Broken())
            }
            await #expect(throws: Broken.self) {
                _ = try await session.upload(for: Self.post(origin.site), from: content)
            }
            let isClosed = try await eventually { origin.openConnections == 0 }
            #expect(isClosed)
        }
        try await origin.stop()
    }

    /// A server that has seen enough responds before the end of the content, and the rest is not read.
    @Test func aResponseBeforeTheEndOfTheContentEndsTheUpload() async throws {
        let origin = try await PlainOrigin(head: "413 Content Too Large\r\nConnection: close", body: "too much")
        let content = AsyncStream<Data> { continuation in continuation.yield(Data("part".utf8)) }
        try await withSession(try LibraryHome("")) { session in
            let (data, response) = try await session.upload(for: Self.post(origin.site), from: content)
            #expect(status(response) == 413)
            #expect(String(decoding: data, as: UTF8.self) == "too much")
        }
        try await origin.stop()
    }

    @Test func aRedirectIsFollowedWithAFileButNotWithASequence() async throws {
        let origin = try await PlainOrigin { request in
            request.hasPrefix("POST /moved ")
                ? PlainOrigin.response("307 Temporary Redirect\r\nLocation: /here", "moved")
                : PlainOrigin.response("200 OK", String(request.prefix { $0 != "\r\n" }))
        }
        let folder = try TemporaryFolder("redirect")
        let file = URL(fileURLWithPath: try folder.write("content", String(repeating: "x", count: 100)))
        try await withSession(try LibraryHome("")) { session in
            let (data, _) = try await session.upload(for: Self.post("\(origin.site)/moved"), fromFile: file)
            #expect(String(decoding: data, as: UTF8.self) == "POST /here HTTP/1.1")
            #expect(origin.requests.last?.contains("Content-Length: 100\r\n") == true)
            let content = AsyncStream { continuation in
                continuation.yield(Data("part".utf8))
                continuation.finish()
            }
            let error = await #expect(throws: URLError.self) {
                _ = try await session.upload(for: Self.post("\(origin.site)/moved"), from: content)
            }
            #expect(error?.code == .requestBodyStreamExhausted)
        }
        try await origin.stop()
    }

    // MARK: Downloads

    @Test func aDownloadReportsItsProgressAndItsFileIsPrivate() async throws {
        let url = try Self.url(try LibraryOrigins.shared.ntlmURL + "/bytes/1000000")
        let progress = Mutex<[TransferProgress]>([])
        try await withSession(try Self.home()) { session in
            let (file, _) = try await session.download(from: url) { now in progress.withLock { $0.append(now) } }
            let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
            #expect(attributes[.size] as? Int == 1_000_000)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
            try FileManager.default.removeItem(at: file)
        }
        let seen = progress.withLock { $0 }
        #expect(seen.count > 1)
        #expect(
            seen.last
                == TransferProgress(countOfBytesReceived: 1_000_000, countOfBytesExpectedToReceive: 1_000_000))
    }

    private static var temporaryFiles: Set<String> {
        let names = try? FileManager.default.contentsOfDirectory(atPath: NSTemporaryDirectory())
        return Set((names ?? []).filter { $0.hasPrefix("countersign-") && $0.hasSuffix(".tmp") })
    }

    @Test func aCancelledDownloadLeavesNoFileAndNoConnection() async throws {
        let origin = try await PlainOrigin { _ in "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nthe first piece" }
        try await withSession(try LibraryHome("")) { session in
            let url = try Self.url(origin.site)
            let (begun, start) = AsyncStream.makeStream(of: Void.self)
            let task = Task { try await session.download(from: url) { _ in start.yield() } }
            for await _ in begun { break }
            let before = Self.temporaryFiles
            task.cancel()
            let error = await #expect(throws: URLError.self) { _ = try await task.value }
            #expect(error?.code == .cancelled)
            #expect(before.subtracting(Self.temporaryFiles).count >= 1)
            let isClosed = try await eventually { origin.openConnections == 0 }
            #expect(isClosed)
        }
        try await origin.stop()
    }

    @Test func aTruncatedDownloadIsAnError() async throws {
        let silent = try await PlainOrigin { _ in
            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nthe first piece"
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = 0.5
        try await withSession(try LibraryHome(""), configuration) { session in
            let error = await #expect(throws: URLError.self) {
                _ = try await session.download(from: Self.url(silent.site))
            }
            #expect(error?.code == .timedOut)
        }
        try await silent.stop()
    }

    // MARK: Streams

    @Test func linesAreSplitAtEitherEnd() async throws {
        let origin = try await PlainOrigin(head: "200 OK", body: "one\r\ntwo\n\nfour")
        try await withSession(try LibraryHome("")) { session in
            let (bytes, _) = try await session.bytes(from: Self.url(origin.site))
            #expect(try await bytes.lines.reduce(into: []) { $0.append($1) } == ["one", "two", "", "four"])
            let error = await #expect(throws: URLError.self) { for try await _ in bytes {} }
            #expect(error?.code == .unknown)
        }
        try await origin.stop()
    }

    /// Sends 64 MiB, and counts how many of them the network has accepted.
    private final class LargeAnswer: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        static let pieces = 64
        let accepted = Mutex(0)

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: \(Self.pieces << 20)\r\n\r\n"
            context.write(wrapOutboundOut(ByteBuffer(string: head)), promise: nil)
            for _ in 0..<Self.pieces {
                let written = context.eventLoop.makePromise(of: Void.self)
                written.futureResult.whenSuccess { self.accepted.withLock { $0 += 1 } }
                context.writeAndFlush(
                    wrapOutboundOut(ByteBuffer(repeating: 65, count: 1 << 20)), promise: written)
            }
        }
    }

    @Test func aStreamThatNobodyReadsStopsTheServer() async throws {
        let answer = LargeAnswer()
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { $0.pipeline.addHandler(answer) }
            .bind(host: "127.0.0.1", port: 0).get()
        let silent = try await PlainOrigin { _ in nil }
        try await withSession(try LibraryHome("")) { session in
            let port = try #require(server.localAddress?.port)
            let (bytes, _) = try await session.bytes(from: Self.url("http://127.0.0.1:\(port)/"))
            // Two requests time out without a reader.
            for _ in 0..<2 {
                let error = await #expect(throws: URLError.self) {
                    _ = try await session.data(for: URLRequest(url: Self.url(silent.site), timeoutInterval: 1))
                }
                #expect(error?.code == .timedOut)
            }
            #expect(answer.accepted.withLock { $0 } < LargeAnswer.pieces / 2)
            var count = 0
            for try await piece in bytes.pieces { count += piece.count }
            #expect(count == LargeAnswer.pieces << 20)
        }
        try await server.close().get()
        try await silent.stop()
    }

    @Test func aReleasedStreamClosesTheConnection() async throws {
        let origin = try await PlainOrigin { _ in "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nthe first piece" }
        try await withSession(try LibraryHome("")) { session in
            let url = try Self.url(origin.site)
            do {
                let (bytes, _) = try await session.bytes(from: url)
                for try await byte in bytes {
                    #expect(byte == UInt8(ascii: "t"))
                    break
                }
            }
            let isClosed = try await eventually { origin.openConnections == 0 }
            #expect(isClosed)
        }
        try await origin.stop()
    }
}
