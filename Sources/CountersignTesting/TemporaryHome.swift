// SPDX-License-Identifier: Apache-2.0

public import Countersign
public import FoundationEssentials
import Glibc

/// A home in a temporary folder, which is deleted when the value is released.
public final class TemporaryHome: Sendable {
    /// The folder, which only this user can read.
    public let folder: URL
    /// Manages the home.
    public let manager: HomeManager

    /// Creates a home without sites, and without a vault until the first credential is stored.
    public init() throws {
        var template = Array("\(FileManager.default.temporaryDirectory.path)/countersign-home-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw ChallengeError(.homeUnreadable, "cannot create a folder: \(String(cString: strerror(errno)))")
        }
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        folder = URL(filePath: path, directoryHint: .isDirectory)
        manager = try HomeManager(home: folder)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// Lists a fake site, trusts its certification authority, and enrols the credential for it: the password of
    /// ``FakeOrigin``, or its client identity.
    public func add(_ origin: FakeOrigin, answering methods: String = "basic,ntlm,certificate") async throws {
        try await manager.addSite("\(origin.url.absoluteString) answer=\(methods)")
        _ = try await manager.addTrustAnchors(Data(origin.anchor.pem.utf8), name: "fake-\(origin.port)")
        try await manager.setPassword(Password(FakeOrigin.password), user: FakeOrigin.user)
        try await manager.importIdentity(origin.identity, name: "fake", replacing: true)
    }

    /// A controller for the home.
    public func controller() throws(ChallengeError) -> ChallengeController { try ChallengeController(home: folder) }
}
