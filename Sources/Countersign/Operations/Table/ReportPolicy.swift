// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// Answers a question about the policy of a running server.
package struct ReportPolicy: VaultOperation {
    package static let name = "report"
    private let question: PolicyQuestion

    package init(_ question: PolicyQuestion) { self.question = question }

    package var isLong: Bool {
        switch question {
        case .explain: false
        case .test: true
        }
    }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> PolicyReport {
        try vault.served().report(question)
    }
}

/// A question about the policy in effect, whose answer is text for people and scripts.
package enum PolicyQuestion: Equatable, Sendable, Codable {
    /// The three checks for a request; nil for GET. `client` has words of `for=`, as in ``SiteList/Client``.
    case explain(url: String, method: String? = nil, client: String? = nil)
    /// One request to a URL through a proxy of its own.
    case test(url: String)
}

/// The answer to a ``PolicyQuestion``.
package struct PolicyReport: Equatable, Sendable, Codable {
    package let text: String
    /// The same as a JSON text.
    package let json: String
    package let isGood: Bool

    package init(text: String, json: String, isGood: Bool = true) {
        self.text = text
        self.json = json
        self.isGood = isGood
    }
}
