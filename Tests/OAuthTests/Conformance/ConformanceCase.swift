// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignOAuth

/// What a provider does, and what the client has to make of it. The names of cases are those of the OpenID
/// Foundation's modules and of MCP's scenarios, as far as there is one: the cases are written from their descriptions.
struct ConformanceCase: Sendable, CustomTestStringConvertible {
    enum Verdict: Sendable {
        case accepted
        /// With words of the message, so that a case is not refused for another reason.
        case refused(OAuthError.Code, String)
        case ignored(OAuthError.Code)
    }

    let name: String
    let verdict: Verdict
    let script: @Sendable (inout ScriptedProvider) -> Void
    /// What else must be true of an accepted sign-in.
    let also: @Sendable (ScriptedRun) -> Bool

    var testDescription: String { name }

    static func accepted(
        _ name: String, _ script: @escaping @Sendable (inout ScriptedProvider) -> Void = { _ in },
        also: @escaping @Sendable (ScriptedRun) -> Bool = { _ in true }
    ) -> Self {
        Self(name: name, verdict: .accepted, script: script, also: also)
    }

    static func refused(
        _ name: String, _ code: OAuthError.Code, _ words: String,
        _ script: @escaping @Sendable (inout ScriptedProvider) -> Void,
        also: @escaping @Sendable (ScriptedRun) -> Bool = { _ in true }
    ) -> Self {
        Self(name: name, verdict: .refused(code, words), script: script, also: also)
    }

    static func ignored(
        _ name: String, _ code: OAuthError.Code, _ script: @escaping @Sendable (inout ScriptedProvider) -> Void
    ) -> Self {
        Self(name: name, verdict: .ignored(code), script: script, also: { $0.sent(.token).isEmpty })
    }

    func check() throws {
        var provider = ScriptedProvider()
        script(&provider)
        let run = try ScriptedRun(provider)
        switch (verdict, run.end) {
        case (.accepted, .accepted): break
        case (.refused(let code, let words), .refused(let error)):
            #expect(error.code == code && error.detail.contains(words), "\(name): \(error)")
        case (.ignored(let code), .ignored(let error)): #expect(error.code == code, "\(name): \(error)")
        case (.accepted, .refused), (.accepted, .ignored), (.refused, .accepted), (.refused, .ignored),
            (.ignored, .accepted), (.ignored, .refused):
            Issue.record("\(name): \(run.end)")
        }
        #expect(also(run), "\(name): the requests are \(run.requests.map(\.url.description))")
    }
}

/// The relying party's plans of the OpenID Foundation and MCP's authorization scenarios, against a scripted provider.
@Suite struct ConformanceTests {
    @Test(arguments: ConformanceCase.basic) func basic(row: ConformanceCase) throws { try row.check() }
    @Test(arguments: ConformanceCase.signatures) func signatures(row: ConformanceCase) throws { try row.check() }
    @Test(arguments: ConformanceCase.configuration) func configuration(row: ConformanceCase) throws { try row.check() }
    @Test(arguments: ConformanceCase.registration) func registration(row: ConformanceCase) throws { try row.check() }
    @Test(arguments: ConformanceCase.refresh) func refresh(row: ConformanceCase) throws { try row.check() }
    @Test(arguments: ConformanceCase.responses) func responses(row: ConformanceCase) throws { try row.check() }
    @Test(arguments: ConformanceCase.fapi) func fapi(row: ConformanceCase) throws { try row.check() }
    @Test(arguments: ConformanceCase.device) func device(row: ConformanceCase) throws { try row.check() }

    @Test func everyCaseHasANameOfItsOwn() {
        let names = ConformanceCase.all.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(names.count >= 120)
    }
}

extension ConformanceCase {
    static let all = basic + signatures + configuration + registration + refresh + responses + fapi + device
}
