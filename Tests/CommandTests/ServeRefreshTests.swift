// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// `serve` with enrolled identities. The EST server is also the origin: it requests a client certificate and rejects
/// revoked ones.
@Suite(.waiting) struct ServeRefreshTests {
    /// A home with an identity enrolled for the server's site, and a running proxy.
    private final class Scene: Sendable {
        let place: EnrolledSandbox
        let proxy: ChildProcess
        let port: String

        init(_ control: [String: any Sendable] = [:], before prepare: (EnrolledSandbox) throws -> Void = { _ in })
            throws
        {
            place = try EnrolledSandbox(control)
            let enrolled = try place.enroll()
            try #require(enrolled.status == 0, "\(enrolled.said)")
            try place.sandbox.succeed("sites", "add", place.server.address(), "answer=certificate")
            let anchors = "\(place.sandbox.home)/Certs/anchors"
            try FileManager.default.createDirectory(atPath: anchors, withIntermediateDirectories: true)
            try FileManager.default.copyItem(atPath: place.server.certificate("ca"), toPath: "\(anchors)/est.pem")
            try prepare(place)
            proxy = try place.sandbox.serve()
            port = try proxy.line(after: "countersign: listening on 127.0.0.1:")
        }

        /// The status that curl receives from the origin through the proxy, and the proxy's log.
        func get(_ flags: String = "", _ path: String = "/.well-known/est/cacerts") throws -> String {
            try place.sandbox.sh(
                "curl -s -o body -w '%{http_code}' --cacert home/Certs/interception/bundle.pem "
                    + "-x http://127.0.0.1:\(port) \(flags) \(place.server.address())\(path)", seconds: 60
            ).output
        }

        func waits(for text: String) -> Bool {
            poll { self.proxy.errorOutput.contains(text) ? true : nil } == true
        }
    }

    // MARK: Automatic renewal

    @Test func dueIdentityIsRefreshedAndUsed() throws {
        let scene = try Scene(before: { place in
            try place.control(RefreshTests.late)
            try #require(try place.refresh("laptop").status == 0)
            try place.control()
        })
        #expect(scene.waits(for: "countersign: info: identity \"laptop\" has a new certificate, valid until 20"))
        #expect(try scene.place.isVerified())
        #expect(try scene.place.needsRefresh("laptop").status == 1)
        #expect(try scene.get() == "200")
        #expect(scene.place.server.log.last?.client == "CN=jdoe")
    }

    @Test func failureIsLoggedWithTheNextAttemptAndTheOldCertificateIsUsed() throws {
        let scene = try Scene(before: { place in
            try place.control(RefreshTests.late)
            try #require(try place.refresh("laptop").status == 0)
            try place.control(["fault": "503", "faultFor": "simplereenroll"])
        })
        #expect(scene.waits(for: "countersign: warning: cannot renew identity \"laptop\", next attempt 20"))
        #expect(try scene.get() == "200")
        let record = try #require(try scene.place.vault.contents.enrollments["laptop"])
        #expect(record.failures == 1 && record.lastFailure > 1_700_000_000)
    }

    @Test func damagedChainFileIsRestored() throws {
        let scene = try Scene(before: { place in unlink(place.chainPath()) })
        #expect(scene.waits(for: "repaired Certs/identities/laptop.pem, the certificate chain of identity \"laptop\""))
        #expect(try scene.place.isVerified())
    }

    @Test func lockedVaultIsLoggedOnceAndNothingIsRefreshed() throws {
        let scene = try Scene(before: { place in
            try place.sandbox.succeed("vault", "rekey", "--passphrase", "--password-stdin", input: "canary-pass\n")
        })
        let said = "certificates are not renewed while the vault is locked"
        #expect(scene.waits(for: said))
        #expect(scene.proxy.errorOutput.components(separatedBy: said).count == 2)
    }

    @Test func nothingIsLoggedWithoutAnEnrolment() throws {
        let sandbox = try Sandbox()
        try sandbox.succeed("sites", "add", "http://git.corp.example", "plaintext=yes")
        let proxy = try sandbox.serve()
        proxy.send(SIGTERM)
        #expect(proxy.waitForExit() == 0)
        #expect(proxy.errorOutput.isEmpty)
    }

    // MARK: Requests in progress

    @Test func responseInProgressCompletesAndTheNextRequestUsesTheNewCertificate() throws {
        let nginx = try NginxOrigin()
        let pki = try TestPKI.shared
        let place = try EnrolledSandbox()
        // The CA that nginx accepts also issues here.
        try place.server.add(
            authority: "client-ca-a", certificate: pki.certificate("client-ca-a"), key: pki.key("client-ca-a"))
        try place.control([
            "issuer": "client-ca-a", "cacerts": ["ca", "client-ca-a"], "clientAuthorities": ["client-ca-a"],
        ])
        let anchors = TextFile.bytes(place.server.certificate("ca")) + TextFile.bytes(pki.certificate("client-ca-a"))
        try place.sandbox.folder.write("anchors.pem", anchors)
        let enrolled = try place.enroll("--anchor", place.sandbox.folder.file("anchors.pem"))
        try #require(enrolled.status == 0, "\(enrolled.said)")
        let site = "https://refresh.test.localhost:\(nginx.mutual13Port)"
        try place.sandbox.succeed("sites", "add", site, "answer=certificate", "identity=laptop")
        let folder = "\(place.sandbox.home)/Certs/anchors"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: pki.originAnchor, toPath: "\(folder)/origin.pem")
        let size = 12 << 20
        try Data(count: size).write(to: URL(fileURLWithPath: "\(nginx.root)/large"))
        let proxy = try place.sandbox.serve()
        let port = try #require(Int(try proxy.line(after: "countersign: listening on 127.0.0.1:")))

        let client = try RawConnection(port: port)
        try client.send("GET \(site)/large HTTP/1.1\r\nHost: refresh.test.localhost:\(nginx.mutual13Port)\r\n\r\n")
        let head = client.receive { $0.contains("\r\n\r\n") }
        #expect(head.hasPrefix("HTTP/1.1 200 "), "\(head.prefix(300))")
        let before = try place.leaf()
        let refreshed = try place.refresh("laptop")
        #expect(refreshed.status == 0, "\(refreshed.said)")
        #expect(poll { proxy.errorOutput.contains("again: ") ? true : nil } == true)
        // The rest of the response that began with the old certificate.
        let length =
            size - (head.utf8.count - (head.range(of: "\r\n\r\n").map { head[..<$0.upperBound].utf8.count } ?? 0))
        #expect(client.receive { $0.utf8.count >= length }.utf8.count == length)
        try client.send(
            "GET \(site)/who HTTP/1.1\r\nHost: refresh.test.localhost:\(nginx.mutual13Port)\r\n"
                + "Connection: close\r\n\r\n"
        )
        #expect(client.receive().contains("TLSv1.3 CN=jdoe"))
        #expect(try place.leaf() != before)
        // An origin has accepted it, so the old one is discarded.
        #expect(
            try poll { try place.vault.contents.enrollments["laptop"]?.previous == nil ? true : nil }
                == true)
    }

    // MARK: Rejections by origins

    @Test(arguments: ["1.2", "1.3"], ["", "-H 'Connection: close' --data-binary @home/Certs/interception/bundle.pem"])
    func rejectedCertificateIsReplacedAndTheRequestRetriedOnce(version: String, flags: String) throws {
        let scene = try Scene(["tls": version])
        let path = flags.isEmpty ? "/.well-known/est/cacerts" : "/.well-known/est/nothing"
        let usual = try scene.get(flags, path)
        #expect(usual == (flags.isEmpty ? "200" : "404"))
        let first = try scene.place.leaf()
        try scene.place.control(["tls": version, "revoked": [first.serialNumberHex]])
        #expect(try scene.get(flags, path) == usual, "\(scene.proxy.errorOutput)\(scene.place.server.log)")
        #expect(
            scene.proxy.errorOutput.contains("an origin rejected identity \"laptop\": requesting a new certificate"))
        let second = try scene.place.leaf()
        #expect(second != first)
        #expect(scene.place.server.requests("simpleenroll").count { $0.user != nil } == 2)

        // At most one refresh in five minutes: the client receives the origin's rejection.
        try scene.place.control(["tls": version, "revoked": [first.serialNumberHex, second.serialNumberHex]])
        #expect(["502", "000"].contains(try scene.get(flags, path)))
        #expect(try scene.place.leaf() == second)
        #expect(scene.place.server.requests("simpleenroll").count { $0.user != nil } == 2)
    }

    /// Without a CONNECT, the request itself opens the connection.
    @Test(arguments: ["1.2", "1.3"])
    func absoluteFormRequestIsRetriedToo(version: String) throws {
        let scene = try Scene(["tls": version])
        try scene.place.control(["tls": version, "revoked": [try scene.place.leaf().serialNumberHex]])
        let client = try RawConnection(port: try #require(Int(scene.port)))
        try client.send(
            "GET \(scene.place.server.address())/.well-known/est/cacerts HTTP/1.1\r\n"
                + "Host: 127.0.0.1:\(scene.place.server.port)\r\nConnection: close\r\n\r\n")
        let response = client.receive(seconds: 40)
        #expect(response.hasPrefix("HTTP/1.1 200 "), "\(response.prefix(300))\(scene.proxy.errorOutput)")
        #expect(scene.place.server.requests("simpleenroll").count { $0.user != nil } == 2)
    }

    /// Another process is refreshing the identity: the request waits for it and is then retried.
    @Test func requestWaitsForARefreshByAnotherProcess() throws {
        let scene = try Scene()
        let file = open("\(scene.place.sandbox.home)/run/refresh-laptop.lock", O_RDWR | O_TRUNC)
        try #require(flock(file, LOCK_EX) == 0)
        try scene.place.control(["revoked": [try scene.place.leaf().serialNumberHex]])
        Thread.detachNewThread {
            _ = scene.waits(for: "an origin rejected identity \"laptop\": requesting a new certificate")
            flock(file, LOCK_UN)
            close(file)
        }
        #expect(try scene.get() == "200", "\(scene.proxy.errorOutput)")
    }

    @Test func concurrentRejectionsCauseOneRefresh() throws {
        let scene = try Scene()
        try scene.place.control(["revoked": [try scene.place.leaf().serialNumberHex]])
        let address = "\(scene.place.server.address())/.well-known/est/cacerts"
        let result = try scene.place.sandbox.sh(
            "for i in 1 2 3 4 5 6; do curl -s -o body$i -w '%{http_code} ' --cacert home/Certs/interception/bundle.pem "
                + "-x http://127.0.0.1:\(scene.port) \(address) & done; wait")
        #expect(result.output == String(repeating: "200 ", count: 6), "\(scene.proxy.errorOutput)")
        #expect(scene.place.server.requests("simpleenroll").count { $0.user != nil } == 2)
    }

    @Test func newCertificateRejectedEverywhereIsRolledBack() throws {
        let scene = try Scene(before: { place in try #require(try place.refresh("laptop").status == 0) })
        let new = try scene.place.leaf()
        let old = try #require(try scene.place.vault.contents.enrollments["laptop"]?.previous?.chain.first)
        try scene.place.control(["revoked": [new.serialNumberHex]])
        #expect(try scene.get() == "200", "\(scene.proxy.errorOutput)")
        #expect(scene.proxy.errorOutput.contains("using the previous one again"))
        #expect(try scene.place.leaf().der == old)
        #expect(scene.place.server.requests("simpleenroll").count { $0.user != nil } == 1)
    }

    @Test func importedIdentityIsNotRefreshedAndTheRejectionIsPassedOn() throws {
        let scene = try Scene()
        let name = try #require(try scene.place.identity())
        try scene.place.vault.update { contents in
            contents.removeEnrollment(named: "laptop")
            try contents.setIdentityKey(
                IdentityKey(name: "laptop", privateKey: name.key.pkcs8, leafSHA256: name.leaf.sha256Fingerprint))
        }
        try scene.place.control(["revoked": [name.leaf.serialNumberHex]])
        #expect(["502", "000"].contains(try scene.get()))
        #expect(try scene.place.leaf() == name.leaf)
    }
}
