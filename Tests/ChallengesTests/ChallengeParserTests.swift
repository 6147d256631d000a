// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import CountersignChallenges

/// One file of `Tests/Fixtures/challenges`: field values, and the expected result of reading them: the challenges, and
/// the first fault. `{0A}` denotes a byte.
struct ParserCase: CustomTestStringConvertible, Sendable {
    let name: String
    var fields: [String] = []
    var expected: [String] = []
    var error: String?

    var testDescription: String { name }

    static let all: [ParserCase] = {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Fixtures/challenges")
        let files = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
        return files.filter { $0.pathExtension == "txt" }.sorted { $0.path < $1.path }.compactMap(ParserCase.init)
    }()

    init?(_ file: URL) {
        guard let text = try? String(contentsOf: file, encoding: .utf8) else { return nil }
        name = file.deletingPathExtension().lastPathComponent
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let colon = line.firstIndex(of: ":") ?? line.endIndex
            let value = Self.unescaped(String(line[colon...].dropFirst().drop { $0 == " " }))
            switch line[..<colon] {
            case "WWW-Authenticate": fields.append(value)
            case "expect": expected.append(value)
            case "error": error = value
            default: return nil
            }
        }
    }

    private static func unescaped(_ text: String) -> String {
        text.replacing(#/\{([0-9A-F]{2})\}/#) { match in
            String(Character(Unicode.Scalar(UInt8(match.1, radix: 16) ?? 0)))
        }
    }
}

extension Challenge {
    /// The format of the expected results: all values are quoted, and a token68 follows a colon.
    var canonical: String {
        let words = parameters.map { parameter in
            "\(parameter.name)=\"\(parameter.value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
        }
        return ([scheme] + (token68.map { [":" + $0] } ?? []) + words + (isCut ? ["(cut)"] : [])).joined(separator: " ")
    }

    /// The same challenge as part of a field without a fault.
    var whole: Challenge { Challenge(scheme: scheme, token68: token68, parameters: parameters) }

    /// The challenge as written in a field.
    var written: String {
        if let token68 { return "\(scheme) \(token68)" }
        let words = parameters.map { Challenge(scheme: "x", parameters: [$0]).canonical.dropFirst(2) }
        return parameters.isEmpty ? scheme : "\(scheme) \(words.joined(separator: ", "))"
    }
}

@Suite struct ChallengeParserTests {
    @Test func corpusIsThere() {
        #expect(ParserCase.all.count == 70)
        #expect(ParserCase.all.filter { $0.error != nil }.count == 17)
    }

    @Test(arguments: ParserCase.all)
    func corpusIsReadAsItSays(_ example: ParserCase) {
        let readings = example.fields.enumerated().map { ChallengeParser.read(ChallengeField($1), number: $0 + 1) }
        let challenges = (try? ChallengeParser.parse(fields: example.fields)) ?? []
        #expect(challenges.map(\.canonical) == example.expected)
        #expect(readings.compactMap(\.fault?.detail).first == example.error)
    }

    /// Only a response without any readable challenge is an error.
    @Test(arguments: ParserCase.all)
    func aFaultIsAnErrorIfNothingIsLeft(_ example: ParserCase) {
        do {
            let challenges = try ChallengeParser.parse(fields: example.fields)
            #expect(challenges.map(\.canonical) == example.expected)
            #expect(example.error == nil || !challenges.isEmpty)
        } catch {
            #expect(example.expected == [])
            #expect(error.code == .unparsableChallenge)
            #expect(error.detail == example.error)
        }
    }

    @Test(arguments: ParserCase.all.filter { $0.error == nil })
    func whatWasReadCanBeWrittenAndReadAgain(_ example: ParserCase) throws {
        let challenges = try ChallengeParser.parse(fields: example.fields)
        let joined = challenges.map(\.written).joined(separator: ", ")
        #expect(try ChallengeParser.parse(fields: [joined]) == challenges.map(\.whole))
        #expect(try ChallengeParser.parse(fields: challenges.map(\.written)) == challenges.map(\.whole))
    }

    /// RFC 9110 §5.3: fields may be joined with commas without changing their meaning.
    @Test(arguments: ParserCase.all.filter { $0.error == nil })
    func joinedFieldsMeanTheSame(_ example: ParserCase) throws {
        let apart = try ChallengeParser.parse(fields: example.fields)
        #expect(try ChallengeParser.parse(fields: [example.fields.joined(separator: ", ")]) == apart)
    }

    /// A field truncated anywhere is rejected, or parsed like the whole field except for the last challenge.
    @Test(arguments: ParserCase.all.filter { $0.error == nil })
    func everyPrefixIsRefusedOrReadAsTheWhole(_ example: ParserCase) throws {
        let field = example.fields.joined(separator: ", ")
        let whole = try ChallengeParser.parse(fields: [field]).map(\.scheme)
        for end in field.unicodeScalars.indices {
            guard let challenges = try? ChallengeParser.parse(fields: [String(field[..<end])]) else { continue }
            #expect(whole.starts(with: challenges.dropLast().map(\.scheme)))
        }
    }

    @Test(arguments: [UInt64(1), 2, 3, 4])
    func mutatedFieldsAreRefusedOrReadAlikeTwice(_ seed: UInt64) throws {
        var random = Generator(state: seed)
        let alphabet = Array(" ,=\"\\\t\u{0}aZ9/+~:;é".unicodeScalars)
        for example in ParserCase.all {
            for _ in 0..<50 {
                var scalars = Array(example.fields.joined(separator: ", ").unicodeScalars)
                for _ in 0...Int.random(in: 0..<3, using: &random) {
                    let place = Int.random(in: 0...scalars.count, using: &random)
                    let scalar = alphabet.randomElement(using: &random) ?? " "
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: scalars.insert(scalar, at: place)
                    case 1 where place < scalars.count: scalars[place] = scalar
                    case _ where place < scalars.count: scalars.remove(at: place)
                    default: break
                    }
                }
                var field = String.UnicodeScalarView()
                field.append(contentsOf: scalars)
                guard let challenges = try? ChallengeParser.parse(fields: [String(field)]) else { continue }
                #expect(try ChallengeParser.parse(fields: challenges.map(\.written)) == challenges.map(\.whole))
            }
        }
    }

    @Test func sixteenKiBPassAndOneByteMoreDoesNot() throws {
        let most = "Basic realm=\"" + String(repeating: "x", count: 16384 - 14) + "\""
        #expect(try ChallengeParser.parse(fields: [most]).first?.realm?.count == 16370)
        #expect(throws: AuthenticationError(.challengeTooLong, "")) { try ChallengeParser.parse(fields: [most + " "]) }
        let reading = ChallengeParser.read(ChallengeField(most + " "))
        #expect(reading.challenges == [])
        #expect(reading.fault?.code == .challengeTooLong)
    }

    @Test func theBoundIsOnAllFieldsTogether() throws {
        let field = "NTLM " + String(repeating: "x", count: 8192 - 5)
        #expect(try ChallengeParser.parse(fields: [field, field]).count == 2)
        #expect(throws: AuthenticationError(.challengeTooLong, "")) {
            try ChallengeParser.parse(fields: [field, field, ","])
        }
    }

    @Test func thousandsOfParametersAreReadInTime() throws {
        let field = "X " + (0..<2000).map { "p\($0)=1" }.joined(separator: ",")
        var challenges: [Challenge] = []
        let elapsed = try ContinuousClock().measure { challenges = try ChallengeParser.parse(fields: [field]) }
        #expect(challenges.first?.parameters.count == 2000)
        #expect(elapsed < .seconds(10))
    }

    @Test(arguments: [
        ("YWJj/12+3A==", "YWJj/12+3A=="), ("/a=", "/a="), ("a/b", "a/b"), ("a=b", "a=b"), ("=", nil), ("a==b", "a==b"),
        ("a/b c", "a/b c"), ("a:b", "a:b"), ("http://h/?q=1&r=2", "http://h/?q=1&r=2"), ("", ""), ("a\\b", "a\\b"),
    ])
    func aValueNeedsNoQuotes(text: String, value: String?) {
        let challenges = try? ChallengeParser.parse(fields: ["Digest realm=\"x\", nonce=\(text), qop=auth"])
        #expect(challenges?.first?.parameter("nonce") == value)
        #expect(challenges?.first?.parameter("qop") == (value == nil ? nil : "auth"))
    }

    @Test func noFieldIsNoChallenge() throws {
        #expect(try ChallengeParser.parse(fields: [String]()) == [])
    }

    @Test func octetsBeyondASCIIAreKept() throws {
        for octets in [[0xFC], [0xC3, 0xBC]] as [[UInt8]] {
            let field = ChallengeField(octets: Array("Basic realm=\"".utf8) + octets + Array("\"".utf8))
            let challenge = try #require(try ChallengeParser.parse(fields: [field]).first)
            #expect(challenge.realm == "\u{FC}")
            #expect(challenge.octets("REALM") == octets)
        }
    }

    @Test func parametersAreFoundInAnyCase() {
        let challenge = Challenge(scheme: "bAsIc", parameters: [AuthParameter("ReAlM", "x"), AuthParameter("b", "y")])
        #expect(challenge.realm == "x")
        #expect(challenge.parameter("B") == "y")
        #expect(challenge.parameter("c") == nil)
        #expect(challenge.isOf("BASIC"))
        #expect(!challenge.isOf("NTLM"))
    }
}

/// Produces the same numbers for the same seed (SplitMix64).
private struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
