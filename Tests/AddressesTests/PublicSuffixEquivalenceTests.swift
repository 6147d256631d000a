// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import CountersignAddresses

/// The oracle for the table: three sets of strings, filled by a straightforward parser.
private struct SuffixSets {
    private(set) var plain: Set<String> = []
    private(set) var wildcards: Set<String> = []
    private(set) var exceptions: Set<String> = []

    init(parsing text: String) {
        for line in text.unicodeScalars.split(whereSeparator: { $0 == "\n" || $0 == "\r" }) {
            guard let word = line.split(whereSeparator: \.properties.isWhitespace).first else { continue }
            let rule = Substring(word)
            if rule.hasPrefix("//") {
                continue
            } else if rule.hasPrefix("!") {
                Self.insert(rule.dropFirst(), into: &exceptions)
            } else if rule.hasPrefix("*.") {
                Self.insert(rule.dropFirst(2), into: &wildcards)
            } else {
                Self.insert(rule, into: &plain)
            }
        }
    }

    var names: Set<String> { plain.union(wildcards).union(exceptions) }

    func isPublicSuffix(_ host: HostName) -> Bool {
        guard host.kind == .name else { return false }
        guard let parent = host.parent else { return true }
        if exceptions.contains(host.text) { return false }
        return plain.contains(host.text) || wildcards.contains(host.text) || wildcards.contains(parent.text)
    }

    private static func insert(_ rule: Substring, into rules: inout Set<String>) {
        guard let name = try? HostName(canonicalizing: rule, for: .forwarded) else { return }
        rules.insert(name.text)
    }
}

@Suite struct PublicSuffixEquivalenceTests {
    /// The names, with their neighbours, for which the table and the sets differ.
    private func differences(_ text: String) -> [String] {
        let sets = SuffixSets(parsing: text)
        let table = PublicSuffixes(parsing: text)
        var asked: Set<String> = ["example.com", "com", "a.b", "127.0.0.1", "::1", "xn--55qx5d.cn", "x.xn--p1ai"]
        for name in sets.names {
            asked.formUnion([name, "a." + name, "a.b." + name, "x" + name, name + "x", "xn--p1ai." + name])
            asked.insert(String(name.drop { $0 != "." }.dropFirst()))
            asked.insert(String(name.dropLast()))
        }
        return asked.filter { host in
            guard let host = try? HostName(canonicalizing: host, for: .forwarded) else { return false }
            return table.isPublicSuffix(host) != sets.isPublicSuffix(host)
        }
    }

    @Test(
        .enabled(if: FileManager.default.isReadableFile(atPath: "/usr/share/publicsuffix/public_suffix_list.dat")))
    func theWholeListMatchesItsRules() throws {
        let text = try String(contentsOfFile: "/usr/share/publicsuffix/public_suffix_list.dat", encoding: .utf8)
        #expect(SuffixSets(parsing: text).names.count > 5_000)
        #expect(differences(text) == [])
    }

    @Test(arguments: [
        "", "\n\n", "com", "co.uk\r\ngithub.io\r\r\n", "\t co.uk\u{0B}rest\n\u{0C}b.c", "no.line.end",
        "//co.uk\n// a.b\n/a.b\na.b//c", "!\n!!a.b\n!a.b\n*.\n*\n*a.b\n*.a.b\n*.*.c.d\n!*.e.f\n*.!g.h",
        "a.b\n*.a.b\n!a.b", "*.a.b\n!c.a.b\nc.a.b", "Upper.Example\nUPPER.example\n*.Mixed.Case\n!Not.Mixed.Case",
        "trailing.dot.\n.leading.dot\ntwo..dots\n_under.score\n-a.b\na-.b\na--b.c\nab--c.d",
        "127.0.0.1\n1.2\n::1\n[::1]\n0x7f.1",
        "3.com\n1.2.c\na.9", "公司.cn\n*.公司.jp\n!例.公司.jp\nBÜCHER.example\nbu\u{308}cher.example\nxn--bcher-kva.example",
        "com\u{A0}x.y\nco.uk\u{3000}\u{3000}\n\u{2003}a.b\n\u{85}c.d\ne.f\u{85}g.h\n\u{1680}\u{2028}\u{205F}",
        "\u{212A}.com\n\u{FEFF}a.b\nｆull.width\na。b",
        "!\u{301}a.b\n*.\u{301}c.d\n//\u{301}\n公//司", "a b c\na.b c.d\n   \n \u{A0} ",
        "nul\u{0}.b\ndel\u{7F}.c\nsp ace.d",
    ])
    func oddLinesAreReadAlike(_ text: String) {
        #expect(differences(text) == [])
    }

    @Test func namesOfEveryLengthAreKept() {
        let label = String(repeating: "l", count: 63)
        let lines = (1...300).map { count in
            stride(from: count, to: 0, by: -64).map { String(label.prefix(min($0, 63))) }.joined(separator: ".")
        }
        #expect(differences(lines.joined(separator: "\n")) == [])
    }

    /// The shortest possible rules, so that the table has to grow.
    @Test func manyShortRulesAreKept() throws {
        let letters = "abcdefghijklmnopqrstuvwxyz".map(String.init)
        let text = letters.flatMap { first in letters.map { "\(first).\($0)" } }.joined(separator: "\n")
        #expect(differences(text) == [])
        #expect(try PublicSuffixes(parsing: text).isPublicSuffix(HostName(canonicalizing: "z.z")))
    }

    @Test func bytesThatAreNotUTF8FaultTheirOwnRuleAlone() throws {
        let list = PublicSuffixes {
            Array("a.b\n\u{FF}".utf8) + [0xC3, 0x0A, 0x80, 0x2E] + Array("x\nc.d\n".utf8)
        }
        #expect(try list.isPublicSuffix(HostName(canonicalizing: "a.b")))
        #expect(try list.isPublicSuffix(HostName(canonicalizing: "c.d")))
    }

    @Test func rulesBeyondASCIIAreKeptWhoeverAsksFirst() async throws {
        let list = PublicSuffixes(parsing: "公司.cn\n*.個人.hk\n")
        let hosts = try ["公司.cn", "a.個人.hk", "個人.hk"].map { try HostName(canonicalizing: $0) }
        let answers = await withTaskGroup(of: Bool.self) { group in
            for index in 0..<64 { group.addTask { list.isPublicSuffix(hosts[index % hosts.count]) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(answers.allSatisfy { $0 })
    }
}
