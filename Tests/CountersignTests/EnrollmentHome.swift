// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignVault
import Dispatch
import Foundation
import Synchronization

@testable import Countersign

import class CountersignCryptography.Secret

/// A provider, and a home into which a person signs in with the library. The home does not exist at the beginning.
final class EnrollmentHome: Sendable {
    static let site = "https://git.corp.example"

    let folder: TemporaryFolder
    let provider: SignInProvider
    let signIns: SignIns

    init(_ control: [String: any Sendable] = [:]) throws {
        folder = try TemporaryFolder("enrollment")
        provider = try SignInProvider(control)
        signIns = try SignIns(home: URL(filePath: folder.file("home")))
    }

    var path: String { folder.file("home") }

    func profile(_ own: [String: any Sendable] = [:]) throws -> EnrollmentProfile {
        let usual: [String: any Sendable] = ["name": "work", "sites": [Self.site]]
        let text = try provider.profile(usual.merging(own) { _, new in new })
        return try EnrollmentProfile(Array(text.utf8), source: "a test")
    }

    func enrollment(_ own: [String: any Sendable] = [:], name: String? = nil) throws -> Enrollment {
        try signIns.enrollment(try profile(own), name: name)
    }

    @discardableResult
    func signIn(_ own: [String: any Sendable] = [:]) async throws -> StoredSignIn {
        try await enrollment(own).signIn(with: .custom(Browser(self)))
    }

    var vault: VaultContents {
        get throws { try SealedVault(home: path).open { () throws in Secret(utf8: "") }.contents }
    }

    fileprivate func curl(_ arguments: [String], _ url: String) async throws -> String {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { [folder] in
                continuation.resume(
                    with: Result {
                        try Command.run(
                            Tool.path("curl"), ["-q", "-sS", "--noproxy", "*", "-o", "/dev/null"] + arguments + [url],
                            in: folder
                        ).output
                    })
            }
        }
    }

    /// Where a browser that opens `url` is sent, as the provider writes it: curl takes an unknown scheme for a path.
    func redirect(of url: String) async throws -> String {
        let head = try await curl(["-D", "-"], url)
        let field = head.split(whereSeparator: \.isNewline).first { $0.lowercased().hasPrefix("location: ") }
        return field.map { String($0.dropFirst("location: ".count)) } ?? ""
    }

    /// Follows redirects as a browser does, to the sign-in's listener.
    struct Browser: UserAgent {
        let home: EnrollmentHome

        init(_ home: EnrollmentHome) { self.home = home }

        func show(_ page: SignInPage) async throws { _ = try await home.curl(["-L"], page.url) }
    }

    /// Stops at the redirect, and reports it.
    final class Window: UserAgent {
        private let home: EnrollmentHome
        private let answers = Mutex<[Bool]>([])

        init(_ home: EnrollmentHome) { self.home = home }

        /// Whether the redirects belonged to the sign-in.
        var verdicts: [Bool] { answers.withLock { $0 } }

        func notices(redirectURI: String) -> Bool { redirectURI.hasPrefix("com.example.app:") }

        func show(_ page: SignInPage) async throws {
            let right = try await home.redirect(of: page.url)
            for url in ["\(page.redirectURI)?code=evil&state=evil", right] {
                let isAccepted = page.redirected(to: url)
                answers.withLock { $0.append(isAccepted) }
            }
        }
    }
}

/// Shows nothing until the sign-in has ended, or fails with an error.
final class PatientAgent: UserAgent {
    private let error: (any Error)?
    private let state = Mutex((isShowing: false, hasEnded: false))

    init(throwing error: (any Error)? = nil) { self.error = error }

    var isShowing: Bool { state.withLock { $0.isShowing } }
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    func show(_ page: SignInPage) async throws {
        state.withLock { $0.isShowing = true }
        if let error { throw error }
        while !Task.isCancelled { try? await Task.sleep(for: .seconds(3600)) }
        state.withLock { $0.hasEnded = true }
    }
}
