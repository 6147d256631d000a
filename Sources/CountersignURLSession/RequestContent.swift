// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOPosix

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The content of a request.
enum RequestContent: Sendable {
    case none
    /// Goes out together with the head.
    case data(Data)
    /// Is read while it is sent.
    case stream(ContentStream)

    /// At most this much is copied after a head.
    private static let inlineBytes = 64 * 1024

    /// The content in memory: after the head if it is small, else in parts.
    static func bytes(_ data: Data) -> RequestContent {
        guard data.count > inlineBytes else { return .data(data) }
        return .stream(
            ContentStream(length: UInt64(data.count), isRepeatable: true) { write in try await write(data) })
    }

    /// The content can be sent again, after a redirect.
    var isRepeatable: Bool {
        if case .stream(let stream) = self { stream.isRepeatable } else { true }
    }
}

/// Content that is read while it is sent, so that the request does not have to be in memory.
struct ContentStream: Sendable {
    typealias Write = @Sendable (Data) async throws -> Void

    /// Nil if it is not known in advance: the chunked coding then marks the end.
    let length: UInt64?
    let isRepeatable: Bool
    /// Passes the content to the function, part by part. The function returns when the proxy accepts more.
    let send: @Sendable (Write) async throws -> Void

    /// How much is read at a time.
    private static let partBytes = 128 * 1024

    init(
        length: UInt64?, isRepeatable: Bool, _ send: @escaping @Sendable (Write) async throws -> Void
    ) {
        self.length = length
        self.isRepeatable = isRepeatable
        self.send = send
    }

    /// The content of a file. Throws Foundation's error if it cannot be opened.
    init(file: URL) throws {
        let length = try FileHandle(forReadingFrom: file).seekToEnd()
        self.init(length: length, isRepeatable: true) { write in
            let handle = try FileHandle(forReadingFrom: file)
            var rest = length
            while rest > 0 {
                let count = Int(min(rest, UInt64(Self.partBytes)))
                let part = try await NIOThreadPool.singleton.runIfActive { try handle.read(upToCount: count) }
                guard let part, !part.isEmpty else { return }
                try await write(part)
                rest -= UInt64(part.count)
            }
        }
    }

    /// The parts of a sequence of the program. An empty part is ignored.
    init<Parts: AsyncSequence & Sendable>(parts: Parts, length: UInt64?) where Parts.Element == Data {
        self.init(length: length, isRepeatable: false) { write in
            for try await part in parts { try await write(part) }
        }
    }

    /// The rest of an open stream, after `start`, which has been read from it already. Closes the stream.
    init(start: Data, rest: InputStream) {
        let source = OpenStream(stream: rest)
        self.init(length: nil, isRepeatable: false) { write in
            defer { source.stream.close() }
            try await write(start)
            while true {
                let part = try await NIOThreadPool.singleton.runIfActive { try source.stream.part(Self.partBytes) }
                if part.isEmpty { return }
                try await write(part)
            }
        }
    }

    /// Unchecked because InputStream is not Sendable. Only one call at a time reads it.
    private struct OpenStream: @unchecked Sendable {
        let stream: InputStream
    }
}

extension InputStream {
    /// Reads up to `count` bytes. Empty at the end.
    func part(_ count: Int) throws -> Data {
        var bytes = [UInt8](repeating: 0, count: count)
        let read = read(&bytes, maxLength: count)
        guard read >= 0 else { throw URLError(.requestBodyStreamExhausted) }
        return Data(bytes[..<read])
    }
}
