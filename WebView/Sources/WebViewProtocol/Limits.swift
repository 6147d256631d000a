// SPDX-License-Identifier: Apache-2.0

/// The largest sizes that the protocol permits.
package enum Limits {
    /// A line on standard input, without its end: room for `open` with 32 KiB of cookies, escaped.
    package static let lineBytes = 128 * 1024
    /// A message of a page, and the answer to it, in UTF-8.
    package static let pageMessageBytes = 16 * 1024
    /// Messages of pages that wait for their answers.
    package static let waitingPageMessages = 16
    /// A URL.
    package static let urlBytes = 16 * 1024
    /// A cookie's name, value, domain and path together, as in RFC 6265 §6.1.
    package static let cookieBytes = 4096
    package static let cookies = 64
    /// The cookies of a session together.
    package static let sessionBytes = 32 * 1024
    package static let headers = 16
    /// The value of a request field.
    package static let headerBytes = 16 * 1024
    /// A configuration profile.
    package static let profileBytes = 1 << 20
    /// Profiles that a window delivers.
    package static let profiles = 8
    /// The characters of a sentence above the page.
    package static let messageCharacters = 500
    package static let redirectURIs = 8
    package static let allowedOrigins = 64
    package static let timeLimit: ClosedRange<Duration> = .seconds(1)...(.seconds(24 * 60 * 60))
}
