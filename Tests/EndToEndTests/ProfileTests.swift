// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// A site that only a person with a configuration profile can use.
@Suite(.waiting) struct ProfileTests {
    /// The site's certificate comes without its issuer, which the profile has, with the root. The site wants a client
    /// certificate of the EST service, which wants the profile's identity.
    @Test func aRequestNeedsEverythingThatAProfileBrings() throws {
        let user = try Countersign(anchors: [])
        let folder = user.folder
        try MadeProfile.certificate("root", "/CN=Root", extensions: MadeProfile.authority, in: folder)
        try MadeProfile.certificate(
            "intermediate", "/CN=Intermediate", extensions: MadeProfile.authority, issuer: "root", in: folder)
        let site = try MadeProfile.certificate(
            "site", "/CN=site",
            extensions: [
                "basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature",
                "extendedKeyUsage=serverAuth", "subjectAltName=DNS:profile.test.localhost",
            ], issuer: "intermediate", in: folder)
        let signer = try MadeProfile.certificate("signer", "/CN=MDM", extensions: MadeProfile.client, in: folder)

        let est = try ESTServer(#"{"auth": "basic", "clientCertificate": "optional"}"#)
        try folder.write("est.pem", TextFile.bytes(est.certificate("ca")))
        try folder.write("est.key", TextFile.bytes(est.key("ca")))
        try MadeProfile.certificate(
            "device", "/CN=device", extensions: MadeProfile.client, issuer: "est", in: folder)
        let identity = try MadeProfile.pkcs12("device", password: "secret", in: folder)

        let port = try Loopback.freePorts(1)[0]
        let server = try ChildProcess(
            try Tool.path("openssl"),
            [
                "s_server", "-accept", "127.0.0.1:\(port)", "-cert", site.certificate, "-key", site.key,
                "-Verify", "1", "-verify_return_error", "-CAfile", est.certificate("ca"), "-www",
            ], capture: folder.file("s_server"))
        let url = "https://profile.test.localhost:\(port)"
        try user.allow("\(url) identity=vpn answer=certificate")
        let proxy = try user.serve()
        try #require(poll { Loopback.answers(port: port) ? true : nil } == true, "\(server.errorOutput)")
        #expect(try proxy.get(url).status != 200)

        let before = try state(of: user)
        let plain = try MadeProfile.write(
            "plain",
            [
                MadeProfile.anchor(folder.file("root.pem"), "example.root"),
                MadeProfile.anchor(folder.file("intermediate.pem"), "example.intermediate"),
                MadeProfile.identity(identity, "example.device", password: "secret"),
                MadeProfile.payload(
                    "countersign.est", "example.est",
                    ["URL": est.address(), "Name": "vpn", "Anchors": [["der": est.certificate("ca")]]]),
            ], in: folder)
        let signed = try MadeProfile.sign(plain, as: "corp.mobileconfig", by: [signer], in: folder)
        let done = try user.run("profile", "install", signed, "--yes")
        try #require(done.status == 0, "\(done.said)")
        #expect(done.error.contains("signed by CN=MDM"), "\(done.error)")
        #expect(est.requests("simpleenroll").map(\.client) == ["CN=device"])
        let text = poll { () -> String? in
            guard let seen = try? proxy.get(url), seen.status == 200 else { return nil }
            return seen.text
        }
        #expect(
            text?.contains("CN=device") == true || text?.contains("CN = device") == true,
            "\(text ?? proxy.process.errorOutput)")

        try user.succeed("profile", "remove", "example.corp")
        let isRefused = poll { () -> Bool? in (try? proxy.get(url).status) != 200 ? true : nil }
        #expect(isRefused == true)
        #expect(try state(of: user) == before)
    }

    /// The home's files without the vault, the interception CA, and the state of running processes.
    private func state(of user: Countersign) throws -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for case let name as String in FileManager.default.enumerator(atPath: user.home) ?? .init() {
            let isOwn = ["vault", "run", "Certs/interception", "breaker", "revocation"].contains { name.hasPrefix($0) }
            var isFolder: ObjCBool = false
            guard !isOwn, FileManager.default.fileExists(atPath: "\(user.home)/\(name)", isDirectory: &isFolder),
                !isFolder.boolValue
            else { continue }
            files[name] = TextFile.bytes("\(user.home)/\(name)")
        }
        return files
    }
}
