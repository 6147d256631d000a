// SPDX-License-Identifier: Apache-2.0

/// A message of the provider's page to the app, which waits for an answer.
package struct PageMessage: Equatable, Sendable {
    /// `https://host[:port]`, from the web view and not from the page.
    package let origin: String
    /// JSON text, at most 16 KiB: `{"authId": "…", "callbacks": [{"type": "…", "input": […], "output": […]}]}`.
    package let body: String

    /// Of a message, and of the answer to it.
    package static let maximumBytes = 16 << 10

    /// In place of an answer that is longer: JSON text in the form of the web view's own errors.
    static let tooLarge = #"{"error":"tooLarge","message":"the answer is longer than \#(maximumBytes) bytes"}"#

    package init(origin: String, body: String) {
        self.origin = origin
        self.body = body
    }
}

/// The pages that may post messages, and the permitted types.
package struct PageMessageRules: Equatable, Sendable {
    /// `https://host[:port]`.
    package let origins: [String]
    /// The types of callbacks, such as `NameCallback`.
    package let types: [String]

    package init(origins: [String], types: [String]) {
        self.origins = origins
        self.types = types
    }
}
