// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignCLI

/// Every command that a message can name is one that the program understands, with all arguments that it needs.
@Suite(.waiting) struct HintCommandTests {
    struct Hint: Hashable, CustomTestStringConvertible {
        let place: String
        /// As in the source, with its interpolations.
        let text: String

        var testDescription: String { "\(place): \(text)" }
    }

    /// Those between backquotes in the string literals of the sources. Ignores comments.
    static func hints() -> [Hint] {
        let sources = "\(Tool.repository)/Sources"
        let files = FileManager.default.enumerator(atPath: sources)?.compactMap { $0 as? String } ?? []
        return files.filter { $0.hasSuffix(".swift") }.sorted().flatMap { file -> [Hint] in
            let code = TextFile.lines("\(sources)/\(file)")
                .filter { !$0.trimmingCharacters(in: .whitespaces).hasPrefix("//") }.joined(separator: "\n")
            // A literal that continues on the next line.
            let joined = code.replacing(#/"\s*\n\s*\+ "/#, with: "")
            return joined.matches(of: #/`(countersign [^`\n]*)`/#).map { Hint(place: file, text: String($0.1)) }
                // As CountersignError.unknown prints them.
                + joined.matches(of: #/addedBy: "([^"]*)"/#).map { Hint(place: file, text: "countersign \($0.1)") }
        }
    }

    /// Commands that help texts name as a program, not to be run as they stand.
    private static let names: Set<String> = [
        "countersign exec", "countersign sites check", "countersign route",
    ]

    /// The words of the command, with an example in place of each interpolation. One behind a letter is `value`,
    /// because it may be empty.
    static func words(_ text: String, _ value: String) -> [String] {
        var plain = ""
        var rest = Substring(text)
        while let start = rest.firstRange(of: "\\(") {
            plain += rest[..<start.lowerBound]
            let isBehindWord = plain.last?.isLetter == true
            rest = rest[start.upperBound...]
            var code = ""
            var depth = 1
            while let next = rest.popFirst() {
                if next == "(" { depth += 1 } else if next == ")" { depth -= 1 }
                guard depth > 0 else { break }
                code.append(next)
            }
            plain += isBehindWord ? value : Self.example(code)
        }
        return (plain + rest).replacing("\\\"", with: "\"").split(separator: " ").dropFirst().map { word in
            switch word {
            case "URL": "https://x.example"
            case "SHA256": String(repeating: "a", count: 64)
            default: String(word)
            }
        }
    }

    /// An example for the interpolation of `code`: the last literal in it, or else a value for its name.
    private static func example(_ code: String) -> String {
        if let literal = code.matches(of: #/"([^"]*)"/#).last { return String(literal.1) }
        if code.contains("principal") { return "x@X.EXAMPLE" }
        if code.contains("server") { return "https://x.example" }
        return code == "secret" ? "--user x" : "x"
    }

    /// One of each kind, and of each form of its command.
    static let remedies: [Remedy] = [
        .addSite("http://printer.example plaintext=yes"), .addSite("proxy://proxy.example:8080 plaintext=yes"),
        .changeLine(.permitPlaintext, line: "AllowedSites/work.sites:3"), .useHTTPS(host: "git.corp.example"),
        .setCredential(name: Remedy.assumedName, .password(user: nil), replaces: false),
        .setCredential(name: "corp", .password(user: "ACME\\j doe"), replaces: true),
        .setCredential(name: "api", .token, replaces: true),
        .setCredential(name: "batch", .principal("batch@CORP.EXAMPLE"), replaces: true),
        .setCredential(name: "batch", .keys(principal: "batch@CORP.EXAMPLE"), replaces: true),
        .permitRetry(name: "corp"), .permitRetry(name: nil), .unlockVault, .resume, .signIn(name: "work", stepUp: nil),
        .signIn(name: "work", stepUp: StepUp()),
        .signIn(name: "work", stepUp: StepUp(scopes: ["https://api.example/read", "a'b"])),
        .signIn(
            name: "work", stepUp: StepUp(claims: #"{"a":1}"#, acrValues: ["urn:a", "b'c"], maxAge: 0),
            site: "https://api.example"),
        .remediate(name: "work"), .completeWipe(name: "work"), .importIdentity(name: nil, replaces: false),
        .importIdentity(name: "laptop", replaces: true), .renewIdentity(name: "laptop"),
        .inspectIdentity(name: "laptop"), .listIdentities, .addTrustAnchor,
        .allowCertificate(server: "git.corp.example:8443", fingerprint: "sha256:" + String(repeating: "a", count: 64)),
        .obtainTicket, .clientObtainsToken(from: "https://auth.registry.example"),
    ]

    /// Fails to compile if a remedy has no example above.
    private static func kind(_ remedy: Remedy) -> Int {
        switch remedy {
        case .addSite: 0
        case .changeLine: 1
        case .useHTTPS: 2
        case .setCredential: 3
        case .permitRetry: 4
        case .unlockVault: 5
        case .resume: 6
        case .signIn: 7
        case .remediate: 8
        case .completeWipe: 9
        case .importIdentity: 10
        case .renewIdentity: 11
        case .inspectIdentity: 12
        case .listIdentities: 13
        case .addTrustAnchor: 14
        case .allowCertificate: 15
        case .obtainTicket: 16
        case .clientObtainsToken: 17
        }
    }

    @Test func everyRemedyHasAnExample() {
        #expect(Set(Self.remedies.map(Self.kind)) == Set(0...17))
    }

    /// The words are those that a shell passes on.
    @Test(arguments: remedies) func theCommandOfARemedyCanBeRun(remedy: Remedy) throws {
        guard let command = remedy.command else {
            return #expect(!remedy.sentence.contains("`countersign"))
        }
        #expect(remedy.sentence.contains("`\(command)`"))
        guard command != "kinit" else { return }
        let words = try Command.run(
            "/bin/sh", ["-c", "for word in \(command); do printf '%s\\n' \"$word\"; done"], environment: [:],
            in: try TemporaryFolder("remedy"), seconds: 30
        ).output.split(separator: "\n").map(String.init)
        #expect(words.first == "countersign")
        _ = try CountersignCommand.parseAsRoot(Array(words.dropFirst()))
    }

    @Test func aServersTextEndsNoCommand() {
        let remedy = Remedy.signIn(name: "work", stepUp: StepUp(scopes: ["a`; rm -rf ~; `"]))
        #expect(remedy.sentence == "`countersign enroll work --scope 'a?; rm -rf ~; ?'` asks for it")
    }

    @Test func theSourcesNameCommands() {
        #expect(Self.hints().count > 80)
    }

    /// Without those whose first word is an interpolation.
    @Test(arguments: Set(hints()).filter { !names.contains($0.text) && !$0.text.hasPrefix("countersign \\(") })
    func aNamedCommandCanBeRun(hint: Hint) throws {
        let faults = ["x", ""].compactMap { value -> String? in
            do {
                _ = try CountersignCommand.parseAsRoot(Self.words(hint.text, value))
                return nil
            } catch {
                let isHelp = CountersignCommand.exitCode(for: error).rawValue == 0
                return isHelp ? nil : CountersignCommand.message(for: error)
            }
        }
        #expect(faults.count < 2, "\(faults)")
    }
}
