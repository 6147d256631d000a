// SPDX-License-Identifier: Apache-2.0

/// An origin that speaks HTTP/2 and some gRPC, and misbehaves on request. Servers/http2_origin.py lists its options and
/// the paths of its faults.
package final class HTTP2Origin: Sendable {
    package let port: Int
    package let log: RequestLog
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init(_ options: [String] = []) throws {
        folder = try TemporaryFolder("http2")
        log = RequestLog(path: folder.file("requests"))
        let pki = try TestPKI.shared
        process = try ChildProcess(
            try Tool.python(),
            [
                Tool.server("http2_origin.py"), "--cert", pki.certificate("server"), "--key", pki.key("server"),
                "--log",
                log.path,
            ] + options, capture: folder.file("server"))
        port = try Int(process.line(after: "listening ")) ?? 0
    }

    package var url: String { "https://two.test.localhost:\(port)" }
}
