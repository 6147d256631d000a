// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Foundation
import Testing

@testable import CountersignPage

/// The page as it is in the sources.
@Suite struct PageDocumentTests {
    private static let text = {
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Sources/CountersignCLI/Page/page.html")
        return (try? String(contentsOf: sources, encoding: .utf8)) ?? ""
    }()

    @Test(arguments: ["<style", "</style>", "<script", "</script>", "<title>", "<noscript>"])
    func thePageHasOne(element: String) {
        #expect(Self.text.split(separator: element, omittingEmptySubsequences: false).count == 2)
    }

    /// Nothing that the policy forbids, or that would make text from elsewhere into a part of the page.
    @Test(arguments: [
        "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", " style=\"",
        " onclick=", " onload=", "javascript:", "<img", "<iframe", "src=", "localStorage", "document.cookie",
    ])
    func thePageHasNo(text: String) {
        #expect(!Self.text.contains(text))
    }

    @Test func theOnlyAddressesElsewhereAreNames() {
        let addresses = Self.text.matches(of: #/https?:\/\/[^\s"'`<)]+/#).map { String($0.output) }
        for address in addresses {
            #expect(
                address.hasPrefix("http://www.w3.org/") || address.contains("corp.example")
                    || address.hasPrefix("http://countersign.localhost"), "\(address)")
        }
    }

    @Test func thePolicyHasTheDigestsOfTheStyleAndTheScript() throws {
        let policy = PageDocument.contentSecurityPolicy(of: Array(Self.text.utf8))
        for element in ["style", "script"] {
            let start = try #require(Self.text.range(of: "<\(element)>"))
            let end = try #require(Self.text.range(of: "</\(element)>"))
            let digest = Digest.sha256.hash(Array(Self.text[start.upperBound..<end.lowerBound].utf8))
            #expect(policy.contains("\(element)-src 'sha256-\(Base64.encode(digest))'"))
        }
        #expect(PageDocument.contentSecurityPolicy(of: []).contains("script-src 'none'"))
    }
}
