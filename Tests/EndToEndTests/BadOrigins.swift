// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin

extension BadOrigin {
    /// The origins in Certs/dev/bad-origins, and one that is created at run time.
    static let all: [BadOrigin] =
        dates + names + issuers + [intercepted] + purposes + strengths + authorities + forms + revocations

    /// Presents a leaf from the user's own interception CA, whose root may be in the user's trust stores.
    static let intercepted = BadOrigin(
        "intercepted", "certificate issued by this proxy's interception CA")

    /// Like the first one, but not in the table. A trust exception for it shows that exceptions are loaded.
    static let control = BadOrigin("control", "certificate expired 2021-01-01")

    private static let otherHost = "certificate is for another host"
    private static func issuedBy(_ name: String) -> String {
        "issued by \"CN=\(name),O=Countersign test\", which is not trusted"
    }

    private static let otherPurpose = "certificate is for another purpose"
    private static let weakKey = "certificate key too weak"
    private static let weakSignature = "certificate signature too weak"
    private static let nameConstraints = "certificate outside its issuer's name constraints"

    private static let noAuthority = "certificate not accepted: invalid CA certificate"
    private static let unknownExtension = "certificate not accepted: unhandled critical extension"

    private static let serial = "certificate not accepted: serial number"
    private static let noHostName =
        "certificate not accepted: a DNS name in it is not a host name (RFC 5280, section 4.2.1.6)"

    private static let dates = [
        BadOrigin("expired", "certificate expired 2021-01-01"),
        BadOrigin("not-yet-valid", "certificate not valid before 2043-01-01"),
    ]

    private static let names = [
        BadOrigin("wrong-host", otherHost),
        BadOrigin("common-name-only", otherHost),
        BadOrigin("wildcard-two-labels", otherHost, host: "a.b.bad.localhost"),
        BadOrigin("wildcard-partial", otherHost, host: "foo.bad.localhost"),
        BadOrigin("wildcard-middle", otherHost, host: "a.b.bad.localhost"),
        BadOrigin("wildcard-single-label", otherHost, host: "bad.localhost"),
        BadOrigin("wildcard-bare", otherHost, host: "bad.localhost"),
        BadOrigin("wildcard-all", otherHost),
        BadOrigin("address-as-name", otherHost, host: "127.0.0.1"),
        BadOrigin("name-for-address", otherHost, host: "127.0.0.1"),
        BadOrigin("wrong-address", otherHost, host: "127.0.0.1"),
        BadOrigin("wildcard-address", otherHost, host: "127.0.0.1"),
        BadOrigin("address-for-name", otherHost),
        BadOrigin("mail-only", otherHost),
        BadOrigin("uri-only", otherHost),
        BadOrigin("nul-in-name", otherHost, noHostName),
        BadOrigin("unnamed", "certificate not accepted: subject empty and Subject Alt Name extension not critical"),
    ]

    private static let issuers = [
        BadOrigin("self-signed", "certificate is self-signed"),
        BadOrigin("self-signed-authority", "certificate is self-signed", "certificate is a certificate authority's"),
        BadOrigin("unknown-root", issuedBy("Unknown root")),
        BadOrigin("unknown-root-sent", issuedBy("Unknown root")),
        BadOrigin("incomplete", issuedBy("Origin intermediate")),
        BadOrigin("missing-issuer", issuedBy("Origin intermediate")),
        BadOrigin("altered", "certificate not accepted: certificate signature failure"),
        BadOrigin("impostor", issuedBy("Origin intermediate")),
    ]

    private static let purposes = [
        BadOrigin("client-purpose", otherPurpose),
        BadOrigin("no-purpose", otherPurpose),
        BadOrigin("any-purpose", otherPurpose),
        BadOrigin("server-and-any-purpose", otherPurpose),
        BadOrigin("signing-purpose", otherPurpose),
        BadOrigin("key-usage", otherPurpose),
        BadOrigin("authority-as-leaf", "certificate is a certificate authority's"),
    ]

    private static let strengths = [
        BadOrigin("rsa-1024", weakKey),
        BadOrigin("sha1", weakSignature),
        BadOrigin("md5", weakSignature),
        BadOrigin("issuer-sha1", weakSignature),
        BadOrigin("issuer-rsa-1024", weakKey),
        BadOrigin("issuer-p192", weakKey),
        BadOrigin("issuer-secp224r1", weakKey),
        BadOrigin("issuer-dsa", weakKey),
    ]

    private static let authorities = [
        BadOrigin("issuer-expired", "certificate expired 2021-01-01"),
        BadOrigin(
            "issuer-no-authority", noAuthority,
            "certificate not accepted: key usage keyCertSign invalid for non-CA cert", otherPurpose),
        BadOrigin(
            "issuer-unconstrained", noAuthority,
            "certificate not accepted: key usage keyCertSign invalid for non-CA cert"),
        BadOrigin(
            "issuer-key-usage", noAuthority, otherPurpose,
            "certificate not accepted: key usage does not include certificate signing"),
        BadOrigin("issuer-client-purpose", otherPurpose),
        BadOrigin(
            "issuer-leaf", noAuthority, otherPurpose,
            "certificate not accepted: key usage does not include certificate signing"),
        BadOrigin("path-length", "certificate chain longer than its issuers allow"),
        BadOrigin("names-not-permitted", nameConstraints),
        BadOrigin("names-excluded", nameConstraints),
        BadOrigin("address-not-permitted", nameConstraints, host: "127.0.0.1"),
    ]

    private static let forms = [
        BadOrigin("unknown-critical", unknownExtension),
        BadOrigin("issuer-unknown-critical", unknownExtension),
        BadOrigin("serial-negative", "\(serial) is not positive (RFC 5280, section 4.1.2.2)"),
        BadOrigin("serial-zero", "\(serial) is not positive (RFC 5280, section 4.1.2.2)"),
        BadOrigin("serial-long", "\(serial) is longer than 20 bytes (RFC 5280, section 4.1.2.2)"),
        BadOrigin("version-1", otherHost, otherPurpose),
    ]

    private static let byRoot = "by \"CN=Origin root,O=Countersign test\""
    private static let list = ["crl", "-in", Tool.fixture("origin-root.crl.pem"), "-noout", "-text"]
    private static let revokedOn = "revoked \(day(list))"
    private static let staple = ["ocsp", "-respin", Tool.fixture("bad-revoked-by-staple.ocsp"), "-noverify", "-text"]

    /// The day of the revocation in the output of openssl: `Revocation Date: Nov 21 07:56:24 2026 GMT`.
    private static func day(_ arguments: [String]) -> String {
        let output = try? Command.run(Tool.path("openssl"), arguments, in: TemporaryFolder()).output
        let line = output?.split(separator: "\n").first { $0.contains("Revocation ") && $0.hasSuffix(" GMT") }
        let words = line?.split(separator: " ").map(String.init) ?? []
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        guard words.count == 7, let month = months.firstIndex(of: words[2]) else { return "on a day in \(line ?? "")" }
        func two(_ text: String) -> String { text.count == 1 ? "0" + text : text }
        return "\(words[5])-\(two("\(month + 1)"))-\(two(words[3]))"
    }

    private static let revocations = [
        BadOrigin("revoked", "certificate \(revokedOn) \(byRoot) (key compromise)"),
        BadOrigin(
            "issuer-revoked",
            "certificate of the issuer \"CN=Issuer of issuer-revoked,O=Countersign test\" \(revokedOn) \(byRoot) "
                + "(CA compromise)"),
        BadOrigin("revoked-by-staple", "certificate revoked \(day(staple)) \(byRoot) (superseded)", hasStaple: true),
        BadOrigin("must-staple", "certificate requires a stapled OCSP response, and none that is valid was sent"),
    ]
}
