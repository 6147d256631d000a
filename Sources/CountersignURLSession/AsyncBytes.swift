// SPDX-License-Identifier: Apache-2.0

public import Foundation

extension AnsweringSession {
    /// The content of a response, byte by byte. It can be read once; a second reading throws `URLError.unknown`.
    public struct AsyncBytes: AsyncSequence, Sendable {
        /// The content as it arrives, which is faster than byte by byte. Reading it counts as reading the bytes.
        public let pieces: Pieces

        /// Creates an iterator.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pieces: pieces.makeAsyncIterator()) }

        /// Reads the bytes.
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate var pieces: Pieces.AsyncIterator
            private var piece = Data()
            private var position = 0

            fileprivate init(pieces: Pieces.AsyncIterator) { self.pieces = pieces }

            /// The next byte; nil at the end. Throws `URLError`.
            public mutating func next() async throws -> UInt8? {
                while position == piece.endIndex {
                    guard let next = try await pieces.next() else { return nil }
                    piece = next
                    position = next.startIndex
                }
                defer { position += 1 }
                return piece[position]
            }
        }

        /// The content of a response, piece by piece.
        public struct Pieces: AsyncSequence, Sendable {
            let content: StreamedContent

            /// Creates an iterator.
            public func makeAsyncIterator() -> AsyncIterator {
                AsyncIterator(pieces: content.makeAsyncIterator())
            }

            /// Reads the pieces.
            public struct AsyncIterator: AsyncIteratorProtocol {
                fileprivate var pieces: StreamedContent.AsyncIterator

                /// The next piece, which is not empty; nil at the end. Throws `URLError`.
                public mutating func next() async throws -> Data? { try await pieces.next() }
            }
        }

        /// The lines of the content in UTF-8, without their ends, which are LF or CR LF.
        public var lines: Lines { Lines(bytes: self) }

        /// The lines of a response.
        public struct Lines: AsyncSequence, Sendable {
            fileprivate let bytes: AsyncBytes

            /// Creates an iterator.
            public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(bytes: bytes.makeAsyncIterator()) }

            /// Reads the lines.
            public struct AsyncIterator: AsyncIteratorProtocol {
                fileprivate var bytes: AsyncBytes.AsyncIterator

                /// The next line; nil at the end. Bytes that are not UTF-8 become U+FFFD. Throws `URLError`.
                public mutating func next() async throws -> String? {
                    var line: [UInt8] = []
                    while let byte = try await bytes.next() {
                        guard byte == UInt8(ascii: "\n") else {
                            line.append(byte)
                            continue
                        }
                        if line.last == UInt8(ascii: "\r") { line.removeLast() }
                        return String(decoding: line, as: UTF8.self)
                    }
                    return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
                }
            }
        }
    }
}
