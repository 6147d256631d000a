// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignOAuth

/// The metadata of protected resources (RFC 9728).
@Suite struct ProtectedResourceTests {
    /// RFC 9728 §3.2.
    private static let example = """
        {
         "resource":
           "https://resource.example.com",
         "authorization_servers":
           ["https://as1.example.com",
            "https://as2.example.net"],
         "bearer_methods_supported":
           ["header", "body"],
         "scopes_supported":
           ["profile", "email", "phone"],
         "resource_documentation":
           "https://resource.example.com/resource_documentation.html"
        }
        """

    private static func read(
        _ text: String, for url: String = "https://resource.example.com/", issuer: String = "https://as1.example.com"
    ) throws -> ProtectedResourceMetadata {
        try ProtectedResourceMetadata(
            parsing: Array(text.utf8), for: try EndpointURL(url, "url"), issuer: try Issuer(issuer))
    }

    private static func fault(_ body: () throws -> ProtectedResourceMetadata) -> ProtectedResourceError.Code? {
        do {
            _ = try body()
            return nil
        } catch {
            return (error as? ProtectedResourceError)?.code
        }
    }

    private static func document(_ resource: String, _ more: String = "") -> String {
        #"{"resource": "\#(resource)", "authorization_servers": ["https://as1.example.com"]\#(more)}"#
    }

    @Test(arguments: ["https://as1.example.com", "https://as2.example.net"])
    func theExampleOfTheStandardIsRead(issuer: String) throws {
        let metadata = try Self.read(Self.example, issuer: issuer)
        #expect(metadata.resource == "https://resource.example.com")
        #expect(metadata.scopes == ["profile", "email", "phone"])
    }

    @Test(arguments: [
        "https://as3.example.com", "https://as1.example.com/", "https://as1.example.co", "https://as1.example.com:443",
        "https://AS1.example.com",
    ])
    func anIssuerIsComparedByteByByte(issuer: String) {
        #expect(Self.fault { try Self.read(Self.example, issuer: issuer) } == .otherIssuer)
    }

    @Test func aResourceThatNamesNoIssuerAcceptsNobody() {
        let text = #"{"resource": "https://resource.example.com"}"#
        #expect(Self.fault { try Self.read(text) } == .otherIssuer)
    }

    @Test(arguments: [
        ("https://r.example/", "https://r.example"), ("https://r.example/a/b?c", "https://r.example"),
        ("https://r.example/a", "https://r.example/a"), ("https://r.example/a/b", "https://r.example/a"),
        ("https://r.example/a/b", "https://r.example/a/"), ("https://R.example:443/a", "https://r.example/a"),
        ("https://r.example:8443/a", "https://r.example:8443/"),
    ])
    func aResourceCoversWhatIsBelowIt(url: String, resource: String) throws {
        #expect(try Self.read(Self.document(resource), for: url).resource == resource)
    }

    @Test(arguments: [
        ("https://r.example/", "https://other.example"), ("https://r.example/", "http://r.example"),
        ("https://r.example/", "https://r.example:8443"), ("https://r.example/", "https://r.example.evil.example"),
        ("https://r.example/ab", "https://r.example/a"), ("https://r.example/a", "https://r.example/a/b"),
        ("https://r.example/", "https://r.example/a"), ("https://r.example/a/../b", "https://r.example/a"),
        ("https://r.example/a/%2E%2e/b", "https://r.example/a"), ("https://r.example/a/..%2Fb", "https://r.example/a"),
        ("https://r.example/a", "https://r.example/a?b"), ("https://r.example/a", "https://r.example/a#b"),
        ("https://r.example/a", "https://u@r.example/a"), ("https://r.example/a", "/a"), ("https://r.example/a", ""),
        ("https://r.example/A", "https://r.example/a"),
    ])
    func anotherResourceIsRefused(url: String, resource: String) {
        #expect(Self.fault { try Self.read(Self.document(resource), for: url) } == .otherResource)
    }

    @Test(arguments: [
        "", "[]", "{", #"{"authorization_servers": []}"#, #"{"resource": 1}"#,
        #"{"resource": "https://resource.example.com", "resource": "https://resource.example.com"}"#,
        #"{"resource": "https://resource.example.com", "authorization_servers": "https://as1.example.com"}"#,
        #"{"resource": "https://resource.example.com", "authorization_servers": [1]}"#,
        #"{"resource": "https://resource.example.com", "scopes_supported": {}}"#,
        #"{"resource": "https://resource.example.com"} x"#,
    ])
    func otherTextsAreMalformed(text: String) {
        #expect(Self.fault { try Self.read(text) } == .malformed)
    }

    @Test func thereAreLimits() throws {
        let long = Self.document(
            "https://resource.example.com", #", "x": "\#(String(repeating: "a", count: 64 << 10))""#)
        #expect(Self.fault { try Self.read(long) } == .malformed)
        let servers = (0..<65).map { "\"https://a\($0).example\"" }.joined(separator: ",")
        let many = #"{"resource": "https://resource.example.com", "authorization_servers": [\#(servers)]}"#
        #expect(Self.fault { try Self.read(many) } == .malformed)
        let scopes = (0..<100).map { "\"s\($0)\"" }.joined(separator: ",")
        let found = try Self.read(Self.document("https://resource.example.com", #", "scopes_supported": [\#(scopes)]"#))
        #expect(found.scopes.count == 64)
    }

    @Test func aScopeThatCannotBeSentIsLeftOut() throws {
        let scopes = #", "scopes_supported": ["read", "", "a b", "read", "q\"", "ü", "write"]"#
        #expect(try Self.read(Self.document("https://resource.example.com", scopes)).scopes == ["read", "write"])
    }

    @Test(arguments: [("[]", true), (#"["body", "query"]"#, true), (#"["header"]"#, false), ("null", false)])
    func aResourceThatTakesNoFieldIsRefused(methods: String, isRefused: Bool) {
        let text = Self.document("https://resource.example.com", #", "bearer_methods_supported": \#(methods)"#)
        #expect(Self.fault { try Self.read(text) } == (isRefused ? .noField : nil))
    }

    // MARK: Location

    /// RFC 9728 §5.1 and §3.1.
    @Test(arguments: [
        "https://resource.example.com/.well-known/oauth-protected-resource",
        "https://resource.example.com/.well-known/oauth-protected-resource/resource1",
        "https://resource.example.com:443/elsewhere?x=1",
    ])
    func aLocationAtTheResourceIsFollowed(text: String) throws {
        let challenged = try EndpointURL("https://resource.example.com/resource1", "url")
        #expect(try ProtectedResourceMetadata.location(text, of: challenged).origin == challenged.origin)
    }

    @Test(arguments: [
        ("https://other.example.com/.well-known/oauth-protected-resource", ProtectedResourceError.Code.otherOrigin),
        ("https://resource.example.com:8443/m", .otherOrigin),
        ("https://resource.example.com.evil.example/m", .otherOrigin),
        ("http://resource.example.com/m", .malformed), ("/m", .malformed), ("", .malformed),
        ("https://u@resource.example.com/m", .malformed), ("https://resource.example.com/m#f", .malformed),
        ("https://resource.example.com/ m", .malformed), ("file:///etc/passwd", .malformed),
    ])
    func noOtherLocationIs(text: String, code: ProtectedResourceError.Code) throws {
        let challenged = try EndpointURL("https://resource.example.com/resource1", "url")
        let error = #expect(throws: ProtectedResourceError.self) {
            try ProtectedResourceMetadata.location(text, of: challenged)
        }
        #expect(error?.code == code)
    }
}
