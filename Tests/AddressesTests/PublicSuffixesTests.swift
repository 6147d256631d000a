// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignAddresses

@Suite struct PublicSuffixesTests {
    static let list = PublicSuffixes(
        parsing: """
            // ===BEGIN ICANN DOMAINS===
            com
            co.uk   trailing words are passed over
            *.ck
            !www.ck

            公司.cn
            Upper.Example
            not a/name
            !
            *.
            """)

    @Test(arguments: [
        ("com", true), ("anything", true), ("example.com", false), ("co.uk", true), ("example.co.uk", false),
        ("uk", true),
        ("ck", true), ("co.ck", true), ("www.ck", false), ("a.co.ck", false), ("xn--55qx5d.cn", true), ("公司.cn", true),
        ("upper.example", true), ("127.0.0.1", false), ("::1", false), ("trailing.uk", false),
    ])
    func rulesWildcardsAndExceptionsAreKept(host: String, isSuffix: Bool) throws {
        #expect(try Self.list.isPublicSuffix(HostName(canonicalizing: host)) == isSuffix)
    }

    @Test func aDomainWithOnlySuffixesBelowItIsASuffix() throws {
        let list = PublicSuffixes(parsing: "jp\n*.kobe.jp\n!city.kobe.jp")
        #expect(try list.isPublicSuffix(HostName(canonicalizing: "kobe.jp")))
        #expect(try !list.isPublicSuffix(HostName(canonicalizing: "city.kobe.jp")))
    }

    @Test(arguments: ["com", "localhost", "co.uk", "com.au", "github.io", "co.jp", "gov.in", "foo.ck", "workers.dev"])
    func theBuiltInListKnowsTheCommonSuffixes(_ host: String) throws {
        #expect(try PublicSuffixes.builtIn.isPublicSuffix(HostName(canonicalizing: host)))
    }

    @Test(arguments: ["example.com", "www.ck", "corp.example", "demo.localhost", "github.com", "bbc.co.uk"])
    func theBuiltInListLeavesRegisteredNamesAlone(_ host: String) throws {
        #expect(try !PublicSuffixes.builtIn.isPublicSuffix(HostName(canonicalizing: host)))
    }

    @Test func crlfEndsALine() throws {
        let list = PublicSuffixes(parsing: "co.uk\r\ngithub.io\r\n")
        #expect(try list.isPublicSuffix(HostName(canonicalizing: "co.uk")))
        #expect(try list.isPublicSuffix(HostName(canonicalizing: "github.io")))
    }
}
