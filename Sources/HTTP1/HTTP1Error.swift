// SPDX-License-Identifier: Apache-2.0

/// The sender of a message, to which errors in it are attributed.
package enum MessageSender: Hashable, Sendable {
    case client
    case origin
}

/// Why a message is refused and who sent it. The detail never contains a field value.
package struct HTTP1Error: Error, Equatable, CustomStringConvertible {
    package enum Code: String, Sendable {
        case malformedRequestLine
        case malformedStatusLine
        case unsupportedVersion
        case requestLineTooLong
        case headTooLarge
        case tooManyFields
        case malformedField
        case obsoleteFolding
        case bareLineFeed
        case bareCarriageReturn
        case missingHost
        case duplicateHost
        case invalidHost
        case conflictingFraming
        case invalidContentLength
        case invalidTransferEncoding
        case unsupportedTransferEncoding
        case malformedChunk
        case chunkExtensionTooLong
        case trailersTooLarge
        case malformedTrailers

        /// The deviation of a repaired response, for a log.
        package var deviation: String {
            switch self {
            case .bareLineFeed: "line feed without carriage return"
            case .obsoleteFolding: "field value folded onto a second line"
            case .malformedStatusLine, .unsupportedVersion: "malformed status-line"
            case .malformedField: "malformed field line"
            case .invalidContentLength: "malformed Content-Length"
            case .invalidTransferEncoding, .unsupportedTransferEncoding: "malformed Transfer-Encoding"
            case .conflictingFraming: "Transfer-Encoding with a Content-Length, or in HTTP/1.0"
            case .malformedChunk: "malformed chunk header"
            case .malformedTrailers: "malformed trailer section, which was left out"
            default: rawValue
            }
        }
    }

    package let code: Code
    package let detail: String
    package let sender: MessageSender

    init(_ code: Code, _ detail: String, sentBy sender: MessageSender) {
        self.code = code
        self.detail = detail
        self.sender = sender
    }

    /// The status of the response to the client: 502 if the origin is at fault, otherwise 400, 414, 431, 501 or 505.
    package var statusHint: Int {
        guard sender == .client else { return 502 }
        switch code {
        case .requestLineTooLong: return 414
        case .headTooLarge, .tooManyFields: return 431
        case .unsupportedTransferEncoding: return 501
        case .unsupportedVersion: return 505
        default: return 400
        }
    }

    package var description: String { detail }
}
