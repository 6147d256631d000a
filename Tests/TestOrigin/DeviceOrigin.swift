// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An origin that asks devices for their certificate (PKeyAuth); Servers/device_origin.py lists what `control` may
/// contain.
package final class DeviceOrigin: Sendable {
    package let port: Int
    private let log: String
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init(_ control: [String: any Sendable] = [:]) throws {
        folder = try TemporaryFolder("device")
        log = folder.file("requests")
        let pki = try TestPKI.shared
        let text = String(decoding: try JSONSerialization.data(withJSONObject: control), as: UTF8.self)
        process = try ChildProcess(
            try Tool.python(),
            [Tool.server("device_origin.py"), text, log, pki.certificate("server"), pki.key("server")],
            capture: folder.file("server"))
        port = try Int(process.line(after: "listening ")) ?? 0
    }

    package var url: String { "https://device.test.localhost:\(port)" }

    /// A request that the origin has received.
    package struct Request: Decodable, Sendable {
        package let method: String
        package let path: String
        /// The values of `x-ms-PKeyAuth`.
        package let announced: [String]
        /// The scheme of `Authorization`.
        package let auth: String?
        /// The names of its parameters.
        package let parameters: [String]?
        /// The reason for the verdict.
        package let why: String?
        /// The length of the content.
        package let body: Int
    }

    package var requests: [Request] {
        TextFile.lines(log).compactMap { try? JSONDecoder().decode(Request.self, from: Data($0.utf8)) }
    }
}
