// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import Foundation
import CountersignTestOrigin
import Testing

@testable import Countersign

/// Both files are what they should be after a start, whatever was there before; and are left alone where they are.
struct TrustBundleTests {
    private let folder: TemporaryFolder
    private let home: Home
    private let system: String
    private let root: Certificate
    private let anchors: [Certificate]

    init() throws {
        folder = try TemporaryFolder("bundle")
        home = Home(path: folder.file("home"))
        let certificates = try ["origin-root", "client-a-root", "unknown-root"].map { name in
            try #require(try Certificate.readPEM(TextFile.bytes(Self.fixture("\(name).pem"))).first)
        }
        root = certificates[0]
        anchors = [certificates[1]]
        system = try folder.write("system.pem", certificates[2].pem + certificates[1].pem)
    }

    private static func fixture(_ name: String) -> String {
        let tests = (#filePath as NSString).deletingLastPathComponent
        return "\(tests)/../../Certs/dev/pki/\(name)"
    }

    /// What was written before is older than a second where `later`.
    private func bundle(later: Bool = false) -> TrustBundle {
        TrustBundle(home: home, environment: ["SSL_CERT_FILE": system]) { Int64(time(nil)) + (later ? 2 : 0) }
    }

    private func write(later: Bool = false, anchors: [Certificate]? = nil) throws {
        try bundle(later: later).write(root: root, anchors: anchors ?? self.anchors)
    }

    private var contents: [[UInt8]] { [home.bundle.path, home.javaBundle.path].map(TextFile.bytes) }

    /// The files' inodes: another one after each replacement.
    private func inodes() throws -> [Int] {
        try [home.bundle.path, home.javaBundle.path].map { path in
            try #require(try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int)
        }
    }

    /// What the files are to be, by the certificates themselves.
    private func expected() throws -> [[UInt8]] {
        let text = TextFile.bytes(system) + Array((anchors + [root]).map(\.pem).joined().utf8)
        return [text, JavaTrustStore.pkcs12(of: try Certificate.readPEM(text))]
    }

    @Test func filesThatAreRightAreLeftAlone() throws {
        try write()
        #expect(contents == (try expected()))
        let before = try inodes()
        try write()
        #expect(try inodes() == before)
    }

    enum Damage: CaseIterable {
        case missing, empty, cutOff, oneByte, longer
    }

    /// Whatever a crash between the two files, or anybody, leaves behind.
    @Test(arguments: Damage.allCases, [([0], false), ([1], false), ([0, 1], false), ([0], true), ([1], true)])
    func filesThatAreNotRightAreWrittenAgain(_ damage: Damage, _ which: (files: [Int], later: Bool)) throws {
        let (files, later) = which
        try write()
        try write(later: later)
        for index in files {
            let path = [home.bundle.path, home.javaBundle.path][index]
            var bytes = TextFile.bytes(path)
            switch damage {
            case .missing:
                try FileManager.default.removeItem(atPath: path)
                continue
            case .empty: bytes = []
            case .cutOff: bytes.removeLast(bytes.count / 2)
            case .oneByte: bytes[bytes.count / 2] ^= 1
            case .longer: bytes.append(0x0A)
            }
            try Data(bytes).write(to: URL(fileURLWithPath: path))
        }
        try write(later: later)
        #expect(contents == (try expected()))
    }

    @Test(arguments: [false, true])
    func anotherSystemFileIsTaken(later: Bool) throws {
        for _ in 0..<2 { try write(later: later) }
        try folder.write("system.pem", anchors[0].pem)
        try write(later: later)
        #expect(contents == (try expected()))
    }

    @Test func anAnchorLessIsOneLess() throws {
        for _ in 0..<2 { try write(later: true) }
        try write(later: true, anchors: [])
        #expect(contents[0] == TextFile.bytes(system) + Array(root.pem.utf8))
    }

    /// Files of other bytes are left, where what is known of them from outside says that they are right.
    @Test func whatNobodyTouchedIsNotLookedInto() throws {
        try write()
        for path in [home.bundle.path, home.javaBundle.path] { try Data().write(to: URL(fileURLWithPath: path)) }
        let state = try #require(bundle(later: true).state(of: anchors + [root]))
        try home.bundleState.replace(with: state)
        try write(later: true)
        #expect(contents == [[], []])
        // Which nobody says in the second of the change.
        let sooner = TrustBundle(home: home, environment: ["SSL_CERT_FILE": system]) { 0 }
        #expect(sooner.state(of: anchors + [root]) == nil)
        try sooner.write(root: root, anchors: anchors)
        #expect(contents == (try expected()))
    }

    /// What is not plain enough to be taken apart at once is left to OpenSSL, each time.
    @Test(arguments: ["\r\n", " \n"])
    func aSystemFileOfAnotherFormCountsToo(_ lineEnd: String) throws {
        try folder.write("system.pem", TextFile.text(system).replacing("\n", with: lineEnd))
        for _ in 0..<2 {
            try write()
            #expect(contents == (try expected()))
        }
    }

    @Test func aFaultySystemFileIsNamedAndChangesNothing() throws {
        try write()
        let before = contents
        try folder.write("system.pem", "-----BEGIN CERTIFICATE-----\nAAEC\n-----END CERTIFICATE-----\n")
        let error = #expect(throws: CountersignError.self) { try write() }
        #expect(error?.detail.contains(system) == true)
        #expect(contents == before)
    }

    @Test func aSystemWithoutAnchorsGivesThisHomesAlone() throws {
        try folder.write("system.pem", "")
        try write()
        #expect(contents == (try expected()))
    }
}
