// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome
import CountersignVault

/// The configuration profiles of a home: Apple's property lists, plain or signed, with trust anchors, identities and an
/// enrolment over EST. `Documentation/DeviceManagement.md` lists the payloads.
///
/// Show the person the ``ConfigurationProfilePlan`` of a profile before you install it: its author can make this home
/// trust servers. All methods are thread-safe, and do their file operations on another thread.
public final class ConfigurationProfiles: Sendable {
    private let signIns: SignIns

    /// The profiles of the home of `signIns`, through the vault that this opens.
    public init(_ signIns: SignIns) { self.signIns = signIns }

    /// The installed profiles, sorted by identifier. Throws ``ChallengeError`` with the codes of the home and the
    /// vault.
    public func all() async throws -> [InstalledConfigurationProfile] {
        try await signIns.vault.withOperations(creates: false) { vault in
            try vault?.perform(ListProfiles()).map { InstalledConfigurationProfile($0) } ?? []
        }
    }

    /// The effects of installing a profile; changes nothing. `document` is a property list in XML, or one in CMS
    /// SignedData, of at most 5 MiB.
    ///
    /// `password` is called on another thread with the name of each identity that needs a password that is not in the
    /// profile. If it throws, or is nil, the identity is refused.
    ///
    /// Throws ``ChallengeError``: `profileFaulty` if the document is not a profile, or was altered after it was signed,
    /// and the codes of the home and the vault. Throws `CancellationError` if the task is cancelled.
    public func plan(
        for document: [UInt8], password: (@Sendable (String) throws -> Password)? = nil
    ) async throws -> ConfigurationProfilePlan {
        try await signIns.vault.withOperations(creates: false) { [home = signIns.home] vault in
            let now = ChallengeController.now()
            let read = try home.readProfile(document, at: now)
            var surroundings = ProfilePlan.Surroundings(now: now)
            if let vault { surroundings = try ProfilePlan.Surroundings(of: home, at: now, in: vault) }
            let plan = ProfilePlan(read, in: surroundings) { name throws(CountersignError) in
                guard let password else { throw CountersignError(.environment, "it needs its password") }
                do {
                    return try password(name).secret
                } catch {
                    throw CountersignError(.environment, "it needs its password, and the program did not give it")
                }
            }
            return ConfigurationProfilePlan(plan)
        }
    }

    /// Installs all of the profile, or nothing. Replaces one with the same identifier. With `skippingRefused`, the
    /// payloads that cannot be installed are left out. Creates the home and its vault if they do not exist.
    ///
    /// With the name of a sign-in, such as the one that ``InteractiveWebviewHandler/installProfile(_:signIn:)`` gets,
    /// the profile is removed when that sign-in fails, is ended or is wiped, and it cannot replace the profile of
    /// another.
    ///
    /// Throws ``ChallengeError``: `profileFaulty` if a payload cannot be installed, or there is nothing to install;
    /// `nameInUse` if the home has changed since the plan was made, or the profile is another sign-in's;
    /// `signInMissing` if no sign-in of that name exists or is in progress; `providerRefused` if the profile's EST
    /// service issues no certificate; and the codes of the home and the vault. Throws `CancellationError` if the task
    /// is cancelled before the profile is installed.
    @discardableResult
    public func install(
        _ plan: ConfigurationProfilePlan, skippingRefused: Bool = false, signIn: String? = nil
    ) async throws -> InstalledConfigurationProfile {
        let owner: ProfileRecord.Owner?
        if let signIn { owner = try await self.owner(signIn, of: plan.plan) } else { owner = nil }
        let (new, keys): (NewProfile, Secret?)
        do {
            (new, keys) = try plan.plan.new(skipsRefused: skippingRefused, owner: owner)
        } catch {
            throw Self.converted(error, .profileFaulty)
        }
        return try await signIns.vault.withOperations(creates: true) { vault in
            guard let vault else { throw Self.missing(new.record.identifier) }
            do {
                _ = try vault.perform(InstallProfile(new), secret: keys)
            } catch {
                throw Self.converted(error, new.enrollment == nil ? .profileFaulty : .providerRefused)
            }
            let records = try vault.perform(ListProfiles())
            guard let record = records.first(where: { $0.identifier == new.record.identifier }) else {
                throw Self.missing(new.record.identifier)
            }
            return InstalledConfigurationProfile(record)
        }
    }

    /// Removes exactly the items that the profile has installed, except those that something else needs. Throws
    /// ``ChallengeError``: `profileMissing` if there is no profile with that identifier, and the codes of the home and
    /// the vault.
    @discardableResult
    public func remove(_ identifier: String) async throws -> RemovedConfigurationProfile {
        try await signIns.vault.withOperations(creates: false) { vault in
            guard let removed = try vault?.perform(RemoveProfile(identifier: identifier)).done else {
                throw Self.missing(identifier)
            }
            return RemovedConfigurationProfile(removed)
        }
    }

    /// The sign-in as the owner of the items of `plan`. Until it is stored, the profile waits for it.
    private func owner(_ signIn: String, of plan: ProfilePlan) async throws -> ProfileRecord.Owner {
        try await signIns.vault.withOperations(creates: true) { [home = signIns.home] vault in
            let identifier = plan.read.profile.identifier
            guard plan.former == nil || plan.former?.owner?.signIn == signIn else {
                throw ChallengeError(
                    .nameInUse,
                    "the profile \(identifier) is installed already, and not by the sign-in \(signIn.debugDescription)",
                    hint: "remove it with `countersign profile remove \(identifier)`")
            }
            // A sign-in in progress has the lock.
            guard let lock = try VaultOperations.enrollingLock(of: signIn, in: home) else {
                return ProfileRecord.Owner(signIn: signIn, isPending: plan.former?.owner?.isPending ?? true)
            }
            defer { withExtendedLifetime(lock) {} }
            guard let vault, try vault.perform(ListSignIns()).contains(where: { $0.name == signIn }) else {
                throw ChallengeError(
                    .signInMissing, "there is no sign-in \(signIn.debugDescription), and nobody is signing in as it",
                    fault: .caller)
            }
            return ProfileRecord.Owner(signIn: signIn, isPending: false)
        }
    }

    /// Removes the profiles that were installed for a sign-in that has failed.
    func removePending(of signIn: String) async throws {
        try await signIns.vault.withOperations(creates: false) { vault in
            guard let vault else { return }
            for record in try vault.perform(ListProfiles()) where record.owner == .init(signIn: signIn, isPending: true)
            {
                _ = try vault.perform(RemoveProfile(identifier: record.identifier))
            }
        }
    }

    private static func missing(_ identifier: String) -> ChallengeError {
        ChallengeError(
            .profileMissing, "there is no configuration profile \(identifier.debugDescription)",
            hint: "list them with `countersign profile list`")
    }

    /// The error of a profile. `code` is that of a refusal.
    private static func converted(_ error: any Error, _ code: ChallengeError.Code) -> any Error {
        guard let error = error as? CountersignError, error.code == .refused else { return error }
        return ChallengeError(code, error.detail, hint: error.hint)
    }
}
