// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// `countersign wipe` of an enrolment with a certificate, and a configuration profile with anchors and an identity.
@Suite(.waiting) struct WipeOfCertificatesTests {
    private let bench: SignInCertificateBench
    private let profiles: ProfileSandbox
    private let file: String
    private let before: HomeState

    /// A person's own anchor, identity, credential and line, which stay.
    init() throws {
        bench = try SignInCertificateBench()
        profiles = try ProfileSandbox(bench.sandbox)
        try bench.enrollOther()
        let folder = bench.sandbox.folder
        try MadeProfile.certificate("own", "/O=Own/CN=Own", extensions: MadeProfile.authority, in: folder)
        try FileManager.default.createDirectory(
            atPath: folder.file("home/Certs/anchors"), withIntermediateDirectories: true)
        try FileManager.default.copyItem(
            atPath: folder.file("own.pem"), toPath: folder.file("home/Certs/anchors/own.pem"))
        try bench.sandbox.succeed("credential", "set", "mine", "--token-stdin", input: "mine\n")
        try bench.sandbox.succeed("sites", "add", "https://own.corp.example", "credential=mine", "answer=bearer")
        try MadeProfile.certificate(
            "vpn", "/O=Example/CN=vpn", extensions: MadeProfile.client, issuer: "intermediate", in: folder)
        _ = try MadeProfile.pkcs12("vpn", password: "secret", in: folder)
        file = try profiles.write([
            profiles.root, profiles.intermediate,
            MadeProfile.identity(folder.file("vpn.p12"), "example.vpn", password: "secret"),
        ])
        before = try profiles.state()
    }

    /// Signs in, which obtains the certificate, and installs the profile as the sign-in's pages do.
    private func enroll() throws {
        let done = try bench.enroll()
        guard done.status == 0 else { throw HarnessError(done.said) }
        let installed = try profiles.install(file)
        guard installed.status == 0 else { throw HarnessError(installed.said) }
        try bench.change { contents in
            guard var record = contents.profiles["example.corp"] else { throw HarnessError("there is no profile") }
            record.owner = ProfileRecord.Owner(signIn: "work", isPending: false)
            try contents.setProfile(record)
        }
    }

    private func files(in folder: String) throws -> [String] {
        try profiles.files().keys.filter { $0.hasPrefix("Certs/\(folder)/") }.sorted()
    }

    private func expectWiped(_ comment: Comment) throws {
        let after = try profiles.state()
        #expect(after.files.keys.sorted() == before.files.keys.sorted(), comment)
        // The states are long.
        let (areFilesSame, isVaultSame) = (after.files == before.files, after.contents == before.contents)
        #expect(areFilesSame && isVaultSame, comment)
    }

    @Test func theCertificateTheAnchorsAndTheProfileGoAndNothingElse() throws {
        #expect(try files(in: "identities") == ["Certs/identities/laptop.pem"])
        let anchors = try files(in: "anchors")
        #expect(anchors == ["Certs/anchors/own.pem"])
        try enroll()
        let contents = try bench.vault
        #expect(contents.identityKeys["work"] != nil && contents.enrollments["work"] != nil)
        #expect(contents.identityKeys["vpn"] != nil && contents.profiles.count == 1)
        let identities = ["laptop", "vpn", "work"].map { "Certs/identities/\($0).pem" }
        #expect(try files(in: "identities") == identities)
        #expect(try files(in: "anchors").count == anchors.count + 2)
        let done = try bench.signIn.run(["wipe", "work", "--yes"])
        #expect(done.status == 0, "\(done.said)")
        try expectWiped("wiped")
        #expect(try bench.sandbox.succeed("certificate", "list", "--no-header").hasPrefix("laptop "))
    }

    /// strace kills the command at each call of the kind, and the next command completes the wipe.
    @Test(arguments: [("rename", 7), ("unlink", 4)])
    func aKilledWipeOfAllIsCompletedByTheNextCommand(call: String, least: Int) throws {
        var (count, interrupted) = (1, 0)
        while true {
            try enroll()
            let calls = try bench.sandbox.callsUnlessKilled(
                at: call, count, ["wipe", "work", "--yes"], environment: bench.signIn.environment)
            let comment = Comment(rawValue: "killed at \(call) \(count)")
            if try !bench.vault.wipes.isEmpty {
                interrupted += 1
                let next = try bench.sandbox.countersign("session", "list")
                #expect(next.status == 0 && next.error.contains("completed the wipe of \"work\""), "\(next.said)")
            } else if try bench.vault.signIns["work"] != nil {
                // It was killed before the intent was recorded.
                #expect(try bench.vault.identityKeys["work"] != nil && bench.vault.profiles.count == 1, comment)
                #expect(try bench.signIn.run(["wipe", "work", "--yes"]).status == 0, comment)
            }
            try expectWiped(comment)
            if let calls {
                #expect(count > 1 && calls >= least, "\(calls)")
                #expect(interrupted > 0, "no wipe was interrupted at \(call)")
                break
            }
            count += 1
            try #require(count < 60)
        }
    }
}
