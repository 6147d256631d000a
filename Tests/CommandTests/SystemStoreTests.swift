// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHome
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignClientSetup

/// The root in the system's trust anchors, using Debian's update-ca-certificates and stubs for those of other
/// distributions.
@Suite(.waiting) final class SystemStoreTests: StoreBench {
    /// A Debian tree with two anchors, one from the distribution and one from an administrator.
    private func makeDebian() throws {
        try folder.write("tree/etc/ca-certificates.conf", "test/origin-root.crt\n")
        try folder.write(
            "tree/usr/share/ca-certificates/test/origin-root.crt", TextFile.bytes(Tool.fixture("origin-root.pem")))
        try folder.write(
            "tree/usr/local/share/ca-certificates/client-a.crt", TextFile.bytes(Tool.fixture("client-a-root.pem")))
        try folder.write("tree/etc/ssl/certs/.keep", "")
        try folder.write("tree/etc/ca-certificates/update.d/.keep", "")
        let update = try tool(
            "update-ca-certificates", "--certsconf", "\(tree)/etc/ca-certificates.conf", "--certsdir",
            "\(tree)/usr/share/ca-certificates", "--localcertsdir", "\(tree)/usr/local/share/ca-certificates",
            "--etccertsdir", "\(tree)/etc/ssl/certs", "--hooksdir", "\(tree)/etc/ca-certificates/update.d")
        guard update.status == 0 else { throw HarnessError(update.said) }
    }

    private func opensslTrusts(_ root: Certificate, _ flag: String, _ place: String) throws -> Bool {
        let file = try folder.write("verified.pem", root.pem)
        let other = flag == "-CAfile" ? "-no-CApath" : "-no-CAfile"
        return try tool("openssl", "verify", other, flag, "\(tree)/etc/ssl/certs\(place)", file).status == 0
    }

    @Test func installAndUninstallRestoreDebiansAnchorsByteForByte() throws {
        try makeDebian()
        let before = listing(tree)
        #expect(run(installer(), .present(root), .system) == [.done])
        #expect(TextFile.text("\(tree)/usr/local/share/ca-certificates/\(name).crt") == root.pem)
        #expect(try opensslTrusts(root, "-CAfile", "/ca-certificates.crt"))
        #expect(try opensslTrusts(root, "-CApath", ""))
        let installed = listing(tree)
        #expect(run(installer(), .present(root), .system) == [.unchanged])
        #expect(listing(tree) == installed)
        #expect(run(installer(), .absent(root), .system) == [.done])
        #expect(listing(tree) == before)
        #expect(run(installer(), .absent(root), .system) == [.unchanged])
    }

    /// On Debian, the members of the group staff may write to the folder.
    @Test func plantedLinkIsNotFollowed() throws {
        try makeDebian()
        let victim = try folder.write("victim", "theirs")
        let link = "\(tree)/usr/local/share/ca-certificates/\(name).crt.new"
        #expect(symlink(victim, link) == 0)
        #expect(run(installer(), .present(root), .system) == [.done])
        #expect(folder.text("victim") == "theirs")
        #expect(try opensslTrusts(root, "-CAfile", "/ca-certificates.crt"))
        #expect(run(installer(), .absent(root), .system) == [.done])
        #expect(folder.text("victim") == "theirs")
    }

    @Test func uninstallRemovesEarlierRootsOfThisHomeOnly() throws {
        try makeDebian()
        let (earlier, foreign) = try (root, InterceptionAuthority.create(at: Int64(time(nil))).root)
        let new = try InterceptionAuthority.create(at: Int64(time(nil))).root
        let elsewhere = installer(home: Home(path: folder.file("elsewhere")))
        #expect(run(elsewhere, .present(foreign), .system) == [.done])
        #expect(run(installer(), .present(earlier), .system) == [.done])
        #expect(installer().places(withRootsBesides: new).map(\.kind) == [.system])
        #expect(run(installer(), .present(new), .system) == [.done])
        // Works even without the home's files.
        #expect(run(installer(), .absent(nil), .system) == [.done])
        #expect(try !opensslTrusts(new, "-CAfile", "/ca-certificates.crt"))
        #expect(try !opensslTrusts(earlier, "-CAfile", "/ca-certificates.crt"))
        #expect(try opensslTrusts(foreign, "-CAfile", "/ca-certificates.crt"))
        #expect(installer().places(withRootsBesides: new).isEmpty)
    }

    @Test func certificateIsNotRemovedByNameAlone() throws {
        try makeDebian()
        let place = "tree/usr/local/share/ca-certificates/\(name).crt"
        try folder.write(place, TextFile.bytes(Tool.fixture("client-b-root.pem")))
        #expect(run(installer(), .absent(root), .system) == [.unchanged])
        guard case .failed(let diagnostic)? = run(installer(), .present(root), .system).first else {
            Issue.record("the other certificate was replaced")
            return
        }
        #expect(diagnostic.message.hasSuffix("exists already, with another certificate"))
        #expect(TextFile.bytes(folder.file(place)) == TextFile.bytes(Tool.fixture("client-b-root.pem")))
    }

    /// A script takes the place of the distribution's program: it builds the bundle and records its arguments.
    @Test(arguments: [
        (
            "etc/pki/ca-trust/source/anchors", ".pem", "update-ca-trust", "extract",
            "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"
        ),
        (
            "etc/ca-certificates/trust-source/anchors", ".crt", "trust", "extract-compat",
            "etc/ca-certificates/extracted/tls-ca-bundle.pem"
        ),
        ("usr/share/pki/trust/anchors", ".pem", "update-ca-certificates", "", "var/lib/ca-certificates/ca-bundle.pem"),
    ])
    func eachDistributionUsesItsFolderAndProgram(
        _ anchors: String, _ suffix: String, _ program: String, _ argument: String, _ bundle: String
    ) throws {
        try folder.write("tree/\(anchors)/.keep", "")
        try folder.write("tree/\(bundle)", "")
        try script(
            program,
            "echo \"$*\" >> \(folder.file("calls")); cat \(tree)/\(anchors)/*\(suffix) > \(tree)/\(bundle) || :")
        let installer = installer(path: "\(folder.file("bin")):/usr/bin:/bin")
        #expect(run(installer, .present(root), .system) == [.done])
        #expect(TextFile.text("\(tree)/\(anchors)/\(name)\(suffix)") == root.pem)
        #expect(folder.text("calls") == "\(argument)\n")
        #expect(run(installer, .present(root), .system) == [.unchanged])
        #expect(run(installer, .absent(root), .system) == [.done])
        #expect(listing("\(tree)/\(anchors)").keys.sorted() == [".keep"])
        #expect(folder.text("calls") == "\(argument)\n\(argument)\n")
    }

    @Test func failingProgramLeavesNothingAndItsOutputIsShown() throws {
        try makeDebian()
        #expect(run(installer(), .present(root), .system) == [.done])
        let before = listing(tree)
        try script("update-ca-certificates", "echo 'rehash: no space left' >&2; exit 3")
        let broken = installer(path: "\(folder.file("bin")):/usr/bin:/bin")
        let other = try InterceptionAuthority.create(at: Int64(time(nil))).root
        let outcomes = run(broken, .present(other), .system) + run(broken, .absent(root), .system)
        for case .failed(let said) in outcomes {
            #expect(said.message.hasSuffix("failed with 3: rehash: no space left"))
        }
        #expect(outcomes.count == 2 && outcomes.allSatisfy { $0 != .done && $0 != .unchanged })
        #expect(listing(tree) == before)
    }

    @Test func rootInTheFolderButNotInTheBundleIsInstalled() throws {
        try makeDebian()
        try folder.write("tree/usr/local/share/ca-certificates/\(name).crt", root.pem)
        #expect(run(installer(), .present(root), .system) == [.done])
        #expect(try opensslTrusts(root, "-CAfile", "/ca-certificates.crt"))
    }

    @Test func withoutRootAndTerminalTheCommandsAreShown() throws {
        try makeDebian()
        let before = listing(tree)
        let outcomes = run(installer(privilege: .none, isWritable: { _ in false }), .present(root), .system)
        guard case .failed(let diagnostic)? = outcomes.first else {
            Issue.record("\(outcomes)")
            return
        }
        #expect(diagnostic.message.contains("only root may write"))
        #expect(
            diagnostic.hint
                == "as root, or by hand: countersign ca export | sudo tee "
                + "\(tree)/usr/local/share/ca-certificates/\(name).crt >/dev/null && sudo update-ca-certificates")
        #expect(listing(tree) == before)
    }

    @Test func sudoRunsTheWholeStep() throws {
        try makeDebian()
        try script("sudo", "echo sudo >> \(folder.file("calls")); shift; exec \"$@\"")
        let path = "\(folder.file("bin")):/usr/bin:/bin"
        let installer = installer(path: path, privilege: .sudo, isWritable: { _ in false })
        #expect(run(installer, .present(root), .system) == [.done])
        #expect(run(installer, .absent(root), .system) == [.done])
        #expect(folder.text("calls") == "sudo\nsudo\n")
        try script("sudo", "echo 'a password is required' >&2; exit 1")
        guard case .failed(let diagnostic)? = run(installer, .present(root), .system).first else {
            Issue.record("it did not fail")
            return
        }
        #expect(diagnostic.message == "sudo failed with 1: a password is required")
    }

    @Test func requestedButMissingStoreIsAFailure() {
        for kind in TrustStoreKind.allCases {
            let installer = installer(path: "/nowhere")
            let outcomes = run(installer, .present(root), kind)
            guard case .failed? = outcomes.first else {
                Issue.record("\(kind): \(outcomes)")
                continue
            }
            #expect(run(installer, .absent(root), kind) == [.unchanged])
            #expect(installer.steps(to: .present(root), in: []).isEmpty)
        }
    }
}
