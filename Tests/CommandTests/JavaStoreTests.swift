// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHome
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignClientSetup

/// The root in Java keystores, using keytool.
@Suite(.waiting) final class JavaStoreTests: StoreBench {
    /// A runtime's keystore with one anchor, created with `keytool`.
    private func makeKeystore(_ type: String, at path: String = "tree/usr/lib/jvm/one") throws -> String {
        let place = try folder.write("\(path)/lib/security/.keep", "")
        let store = String(place.dropLast(".keep".count)) + "cacerts"
        let made = try tool(
            "keytool", "-importcert", "-noprompt", "-trustcacerts", "-alias", "other", "-keystore", store, "-storetype",
            type, "-storepass", "changeit", "-file", Tool.fixture("origin-root.pem"))
        guard made.status == 0 else { throw HarnessError(made.said) }
        return store
    }

    private func aliases(_ store: String) throws -> [String] {
        try tool("keytool", "-list", "-keystore", store, "-storepass", "changeit").output.split(separator: "\n")
            .filter { $0.contains("trustedCertEntry") }.map { String($0.prefix { $0 != "," }) }.sorted()
    }

    @Test(arguments: ["JKS", "PKCS12"])
    func rootIsAddedAndRemoved(_ type: String) throws {
        let store = try makeKeystore(type)
        chmod(store, 0o664)
        let original = TextFile.bytes(store)
        #expect(run(installer(), .present(root), .java) == [.done])
        #expect(try aliases(store) == [name, "other"])
        let bytes = TextFile.bytes(store)
        #expect(run(installer(), .present(root), .java) == [.unchanged])
        #expect(TextFile.bytes(store) == bytes)
        #expect(run(installer(), .absent(root), .java) == [.done])
        #expect(TextFile.bytes(store) == original)
        #expect(run(installer(), .absent(root), .java) == [.unchanged])
        let mode = try FileManager.default.attributesOfItem(atPath: store)[.posixPermissions] as? Int
        #expect(mode == 0o664)
        #expect(listing("\(tree)/usr/lib/jvm/one/lib/security").keys.sorted() == [".keep", "cacerts"])
    }

    @Test func lastOfSeveralRootsRestoresTheKeystore() throws {
        let store = try makeKeystore("PKCS12")
        let original = TextFile.bytes(store)
        let other = try InterceptionAuthority.create(at: Int64(time(nil))).root
        let elsewhere = installer(home: Home(path: folder.file("elsewhere")))
        #expect(run(installer(), .present(root), .java) == [.done])
        #expect(run(elsewhere, .present(other), .java) == [.done])
        #expect(run(installer(), .absent(root), .java) == [.done])
        #expect(try aliases(store).count == 2)
        #expect(run(elsewhere, .absent(other), .java) == [.done])
        #expect(TextFile.bytes(store) == original)
        #expect(listing("\(tree)/usr/lib/jvm/one/lib/security").keys.sorted() == [".keep", "cacerts"])
    }

    @Test func changesOfOthersSurvive() throws {
        let store = try makeKeystore("PKCS12")
        #expect(run(installer(), .present(root), .java) == [.done])
        try tool(
            "keytool", "-importcert", "-noprompt", "-alias", "another", "-keystore", store, "-storepass", "changeit",
            "-file", Tool.fixture("client-a-root.pem"))
        #expect(run(installer(), .absent(root), .java) == [.done])
        #expect(try aliases(store) == ["another", "other"])
        #expect(listing("\(tree)/usr/lib/jvm/one/lib/security").keys.sorted() == [".keep", "cacerts"])
    }

    /// A program that changes the keystore while keytool runs for Countersign.
    @Test func changeDuringACommandSurvives() throws {
        let store = try makeKeystore("PKCS12")
        try script(
            "keytool",
            """
            PATH=/usr/bin:/bin
            case "$*" in *-importcert*) [ -e \(folder.file("changed")) ] || {
                : > \(folder.file("changed"))
                COUNTERSIGN_STOREPASS= keytool -importcert -noprompt -alias another -keystore \(store) -storepass \
                changeit -file \(Tool.fixture("client-a-root.pem"))
            } ;; esac
            exec keytool "$@"
            """)
        let wrapped = installer(path: "\(folder.file("bin")):/usr/bin:/bin")
        guard case .failed(let diagnostic)? = run(wrapped, .present(root), .java).first else {
            Issue.record("it did not fail: \(try aliases(store))")
            return
        }
        #expect(diagnostic.message.contains("another program has changed"), "\(diagnostic.message)")
        #expect(try aliases(store) == ["another", "other"])
        #expect(run(wrapped, .present(root), .java) == [.done])
        #expect(run(wrapped, .absent(root), .java) == [.done])
        #expect(try aliases(store) == ["another", "other"])
        #expect(listing("\(tree)/usr/lib/jvm/one/lib/security").keys.sorted() == [".keep", "cacerts"])
    }

    @Test func withoutADigestNothingIsRestored() throws {
        let store = try makeKeystore("PKCS12")
        try script("sha256sum", "exit 1")
        let wrapped = installer(path: "\(folder.file("bin")):/usr/bin:/bin")
        #expect(run(wrapped, .present(root), .java) == [.done])
        try tool(
            "keytool", "-importcert", "-noprompt", "-alias", "another", "-keystore", store, "-storepass", "changeit",
            "-file", Tool.fixture("client-a-root.pem"))
        #expect(run(wrapped, .absent(root), .java) == [.done])
        #expect(try aliases(store) == ["another", "other"])
    }

    /// Root must not follow a link that a user has planted in the keystore's folder.
    @Test(arguments: ["link", "dangling", "folder"])
    func plantedNamesAreNotFollowed(_ kind: String) throws {
        let store = try makeKeystore("PKCS12")
        let original = TextFile.bytes(store)
        let victim = folder.file("victim")
        for name in ["countersign", "countersign-original", "countersign-digest"] {
            if kind == "folder" {
                #expect(mkdir("\(store).\(name)", 0o755) == 0)
            } else {
                #expect(symlink(victim, "\(store).\(name)") == 0)
            }
        }
        if kind == "link" { try folder.write("victim", "theirs") }
        #expect(run(installer(), .present(root), .java) == [.done])
        #expect(try aliases(store) == [name, "other"])
        #expect(run(installer(), .absent(root), .java) == [.done])
        #expect(try aliases(store) == ["other"])
        if kind == "link" { #expect(folder.text("victim") == "theirs") }
        if kind == "dangling" { #expect(!StoreLayout.exists(victim)) }
        if kind != "folder" { #expect(TextFile.bytes(store) == original) }
        for name in ["countersign", "countersign-original", "countersign-digest"] where kind == "folder" {
            #expect(StoreLayout.names(in: "\(store).\(name)").isEmpty)
        }
    }

    /// An original that is a link would be put in the place of the keystore.
    @Test func linkIsNotRestored() throws {
        let store = try makeKeystore("PKCS12")
        #expect(run(installer(), .present(root), .java) == [.done])
        let victim = try folder.write("victim", "theirs")
        #expect(unlink("\(store).countersign-original") == 0)
        #expect(symlink(victim, "\(store).countersign-original") == 0)
        #expect(run(installer(), .absent(root), .java) == [.done])
        #expect(try aliases(store) == ["other"])
        #expect(listing("\(tree)/usr/lib/jvm/one/lib/security").keys.sorted() == [".keep", "cacerts"])
    }

    @Test func runtimesSharingAKeystoreAreOneStore() throws {
        let store = try makeKeystore("JKS")
        for name in ["two", "three"] {
            try folder.write("tree/usr/lib/jvm/\(name)/lib/security/.keep", "")
            try FileManager.default.createSymbolicLink(
                atPath: folder.file("tree/usr/lib/jvm/\(name)/lib/security/cacerts"),
                withDestinationPath: "../../../one/lib/security/cacerts")
        }
        let other = try makeKeystore("JKS", at: "elsewhere")
        #expect(run(installer(java: folder.file("elsewhere")), .present(root), .java) == [.done, .done])
        #expect(try aliases(store) == [name, "other"])
        #expect(try aliases(other) == [name, "other"])
    }

    @Test func leftoverOfDebiansHookIsRemoved() throws {
        let store = try makeKeystore("JKS")
        try tool(
            "keytool", "-importcert", "-noprompt", "-alias", "debian:\(name).pem", "-keystore", store, "-storepass",
            "changeit", "-file", folder.write("root.pem", root.pem))
        #expect(run(installer(), .present(root), .java) == [.unchanged])
        #expect(run(installer(), .absent(nil), .java) == [.done])
        #expect(try aliases(store) == ["other"])
    }

    @Test func keystoreWithAnotherPasswordIsLeftAlone() throws {
        let store = try makeKeystore("JKS")
        try tool("keytool", "-storepasswd", "-keystore", store, "-storepass", "changeit", "-new", "another one")
        let bytes = TextFile.bytes(store)
        guard case .failed(let diagnostic)? = run(installer(), .present(root), .java).first else {
            Issue.record("it did not fail")
            return
        }
        #expect(diagnostic.message.contains("password was incorrect"), "\(diagnostic.message)")
        #expect(TextFile.bytes(store) == bytes)
    }

    @Test func keystoreManagedByTheSystemIsLeftAlone() throws {
        _ = try makeKeystore("JKS", at: "tree/etc/pki/ca-trust/extracted/java")
        try folder.write("tree/usr/lib/jvm/one/lib/security/.keep", "")
        try FileManager.default.createSymbolicLink(
            atPath: folder.file("tree/usr/lib/jvm/one/lib/security/cacerts"),
            withDestinationPath: "../../../../../../etc/pki/ca-trust/extracted/java/lib/security/cacerts")
        guard case .failed(let diagnostic)? = run(installer(), .present(root), .java).first else {
            Issue.record("it did not fail")
            return
        }
        #expect(diagnostic.hint == "use --store system, which updates it too")
    }

    @Test func unwritableKeystoreUsesSudo() throws {
        let store = try makeKeystore("JKS")
        guard
            case .failed(let diagnostic)? = run(
                installer(privilege: .none, isWritable: { _ in false }), .present(root), .java
            ).first
        else {
            Issue.record("it did not fail")
            return
        }
        #expect(diagnostic.hint?.contains("sudo") == true && diagnostic.hint?.contains(name) == true)
        try script("sudo", "shift; for word; do echo \"$word\"; done >> \(folder.file("words")); exec \"$@\"")
        let installer = installer(
            path: "\(folder.file("bin")):/usr/bin:/bin", privilege: .sudo, isWritable: { _ in false })
        #expect(run(installer, .present(root), .java) == [.done])
        #expect(try aliases(store) == [name, "other"])
        #expect(!folder.text("words").contains("changeit"))
    }
}
