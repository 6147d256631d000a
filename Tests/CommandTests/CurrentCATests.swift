// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// The certificates that a running `serve` presents, as read by `openssl`, before and after a change to the list or the
/// CA.
@Suite(.waiting) struct CurrentCATests {
    private let sandbox: Sandbox
    private let origin: ChallengingOrigin
    private let site: String
    private let proxy: String
    private let server: ChildProcess

    init() throws {
        sandbox = try Sandbox()
        let folder = sandbox.folder
        origin = try ChallengingOrigin(.open, user: "nobody", password: "nothing")
        site = "a.test.localhost:\(origin.port)"
        try folder.write("home/Certs/anchors/origin.pem", TextFile.bytes(TestPKI.shared.originAnchor))
        try sandbox.succeed("sites", "add", "https://\(site)")
        server = try sandbox.serve()
        proxy = try server.line(after: "countersign: listening on ")
    }

    /// Saves the leaf and the issuing certificate of a new connection as `leaf.pem` and `issuing.pem` in the folder.
    private func connect() throws {
        let shown = try sandbox.sh(
            """
            openssl s_client -proxy \(proxy) -connect \(site) -servername a.test.localhost -showcerts </dev/null \
            2>/dev/null | awk '/BEGIN CERT/ { n++ } /BEGIN CERT/, /END CERT/ { print > (n == 1 ? "leaf.pem" : \
            "issuing.pem") }'
            """)
        guard shown.status == 0 else { throw HarnessError(shown.said) }
    }

    private func text(_ file: String, _ flags: String = "-text") throws -> String {
        try sandbox.sh("openssl x509 -in \(file) -noout \(flags)").output
    }

    /// Whether `openssl` verifies the presented chain against the root in `file`.
    private func isVerified(by file: String) throws -> Bool {
        try sandbox.sh(
            "openssl verify -no-CApath -x509_strict -purpose sslserver -verify_hostname a.test.localhost "
                + "-CAfile \(file) -untrusted issuing.pem leaf.pem"
        ).status == 0
    }

    private func days(_ file: String) throws -> (past: Double, whole: Double) {
        let dates = try text(file, "-startdate -enddate -dateopt iso_8601").split(separator: "\n").compactMap { line in
            ISO8601DateFormatter().date(from: line.split(separator: "=")[1].replacingOccurrences(of: " ", with: "T"))
        }
        try #require(dates.count == 2)
        return (Date().timeIntervalSince(dates[0]) / 86_400, dates[1].timeIntervalSince(dates[0]) / 86_400)
    }

    @Test
    func presentedChainIsConstrainedToTheListedSites() throws {
        try connect()
        #expect(try isVerified(by: "home/Certs/interception/root.pem"))
        let issuing = try text("issuing.pem")
        let constraints = issuing.split(separator: "X509v3 Name Constraints: critical\n").last ?? ""
        let lines = constraints.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        #expect(
            Array(lines.prefix(5)) == [
                "Permitted:", "DNS:a.test.localhost", "Excluded:", "IP:0.0.0.0/0.0.0.0",
                "IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0",
            ])
        #expect(issuing.contains("X509v3 Basic Constraints: critical\n                CA:TRUE, pathlen:0\n"))
        #expect(issuing.contains("X509v3 Extended Key Usage: \n                TLS Web Server Authentication\n"))
        let leaf = try text("leaf.pem")
        #expect(leaf.contains("X509v3 Subject Alternative Name: \n                DNS:a.test.localhost\n"))
        for (file, longest) in [("leaf.pem", 7.0), ("issuing.pem", 30), ("home/Certs/interception/root.pem", 730)] {
            let days = try days(file)
            #expect(days.whole <= longest && days.whole > longest - 0.01, "\(file): \(days)")
            #expect(days.past >= 1 && days.past < 1.01, "\(file): \(days)")
            // 128 bits; the leading bits may be zero.
            let serial = try text(file, "-serial").split(separator: "=").last ?? ""
            #expect(serial.count > 24 && serial.count <= 33, "\(file): \(serial)")
        }
    }

    @Test
    func changedListReissuesTheIssuingCertificateImmediately() throws {
        try connect()
        let (before, root) = (
            sandbox.folder.text("issuing.pem"), sandbox.folder.text("home/Certs/interception/root.pem")
        )
        try sandbox.succeed("sites", "add", "https://git.corp.example")
        try sandbox.succeed("sites", "add", "https://10.1.2.3")
        let isNew: Bool? = try poll {
            try connect()
            return try text("issuing.pem").contains("IP:10.1.2.3/255.255.255.255") ? true : nil
        }
        #expect(isNew == true)
        #expect(sandbox.folder.text("issuing.pem") != before)
        #expect(try text("issuing.pem").contains("DNS:git.corp.example"))
        #expect(sandbox.folder.text("home/Certs/interception/root.pem") == root)
        #expect(try isVerified(by: "home/Certs/interception/root.pem"))
    }

    @Test
    func serverUsesTheRotatedCA() throws {
        try connect()
        let folder = sandbox.folder
        try folder.write("old.pem", folder.text("home/Certs/interception/root.pem"))
        #expect(try isVerified(by: "old.pem"))
        try sandbox.succeed("ca", "rotate", "--yes")
        let isTakenUp: Bool? = try poll {
            try connect()
            return try isVerified(by: "home/Certs/interception/root.pem") ? true : nil
        }
        #expect(isTakenUp == true)
        #expect(try !isVerified(by: "old.pem"))
        #expect(try isVerified(by: "home/Certs/interception/bundle.pem"))
        #expect(!server.errorOutput.contains("error"), "\(server.errorOutput)")
    }
}
