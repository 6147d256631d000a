// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The settings that all sessions of one configuration share.
struct SessionSettings: Sendable {
    /// Added to requests that do not contain the field already.
    let additionalFields: [String: String]
    let cookies: HTTPCookieStorage?
    /// The default for the longest time without data from the proxy, in seconds.
    let requestSeconds: TimeInterval
    /// The longest duration of a whole task.
    let patience: TimeAmount

    init(_ configuration: URLSessionConfiguration) {
        var fields: [String: String] = [:]
        for (name, value) in configuration.httpAdditionalHeaders ?? [:] {
            if let name = name as? String { fields[name] = value as? String ?? "\(value)" }
        }
        additionalFields = fields
        cookies = configuration.httpShouldSetCookies ? configuration.httpCookieStorage : nil
        requestSeconds = configuration.timeoutIntervalForRequest
        patience = .seconds(upTo: configuration.timeoutIntervalForResource)
    }
}

extension TimeAmount {
    /// Converts Foundation's seconds, clamped to 0 seconds...30 days.
    static func seconds(upTo seconds: TimeInterval) -> TimeAmount {
        .milliseconds(Int64(max(0, min(seconds, 30 * 86_400)) * 1000))
    }
}
