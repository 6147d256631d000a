// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignChallenges
import CountersignHome
import CountersignReporting

/// Something that stays as it is until the person does something.
struct StatusProblem: Equatable, Encodable {
    /// What it is about, for scripts.
    enum Subject: String, Encodable {
        case server, vault, paused, sites, credential, identity, signIn, device, wipe, expired, file
    }

    let subject: Subject
    /// Without a full stop.
    let message: String
    /// What helps, each in a sentence with its command between backquotes; the best first.
    let advice: [String]

    init(_ subject: Subject, _ message: String, _ advice: [String] = []) {
        self.subject = subject
        self.message = message
        self.advice = advice
    }

    init(_ subject: Subject, _ message: String, _ remedies: Remedy...) {
        self.init(subject, message, remedies.map(\.sentence))
    }

    init(_ subject: Subject, _ diagnostic: Diagnostic) {
        self.init(subject, diagnostic.message, diagnostic.hint.map { [$0] } ?? [])
    }

    /// The remedy is said apart from the reason.
    init(_ subject: Subject, _ refusal: Refusal, _ remedy: Remedy) {
        self.init(subject, refusal.bareText ?? refusal.text, remedy)
    }
}

extension HomeStatus {
    /// Everything that needs the person: what stops all answers comes first.
    var problems: [StatusProblem] {
        serverProblems + vaultProblems + siteProblems + credentialProblems + identityProblems + signInProblems
            + endings.filter { $0.hasPassed(at: now) && !isReportedByItself($0) }.map {
                StatusProblem(.expired, $0.sentence(at: now), [$0.advice])
            }
            + faults.map { StatusProblem(.file, $0) }
    }

    private var serverProblems: [StatusProblem] {
        var problems: [StatusProblem] = []
        if case .unreachable(let diagnostic) = server { problems.append(StatusProblem(.server, diagnostic)) }
        if isPaused { problems.append(StatusProblem(.paused, .paused, .resume)) }
        return problems
    }

    private var vaultProblems: [StatusProblem] {
        switch vault {
        case .none, .open: isLockedInServer ? [StatusProblem(.vault, .locked, .unlockVault)] : []
        case .locked: [StatusProblem(.vault, .locked, .unlockVault)]
        case .closed(inServer: true):
            [
                StatusProblem(
                    .vault, "the vault's contents are not shown: they need its passphrase",
                    ["`countersign status --password-stdin` reads it from standard input"])
            ]
        case .closed(inServer: false):
            [
                StatusProblem(
                    .vault, "the vault needs its passphrase", ["`countersign serve` asks for it and keeps it open"])
            ]
        case .faulty(let diagnostic): [StatusProblem(.vault, diagnostic)]
        }
    }

    private var siteProblems: [StatusProblem] {
        switch sites {
        case .listed(_, let remarks): remarks.map { StatusProblem(.sites, $0) }
        case .faulty(let diagnostics): diagnostics.map { StatusProblem(.sites, $0) }
        }
    }

    /// A pause after silence ends by itself, and is no problem.
    private var credentialProblems: [StatusProblem] {
        blocked.filter { $0.isBlockedEverywhere || $0.places.contains { $0.until == nil } }.map { blocked in
            let remedies = [replacement(of: blocked.name), .permitRetry(name: blocked.name)].compactMap(\.self)
            return StatusProblem(
                .credential, "credential \"\(blocked.name)\": \(blocked.sentence)", remedies.map(\.sentence))
        }
    }

    /// Nil if its kind is not known.
    private func replacement(of name: String) -> Remedy? {
        if contents?.signIns.contains(where: { $0.name == name }) == true { return .signIn(name: name, stepUp: nil) }
        guard let credential = contents?.credentials.first(where: { $0.name == name }) else { return nil }
        let kind: Remedy.Contents =
            switch credential.kind {
            case .password: .password(user: credential.user)
            case .token: .token
            case .principal: .principal(credential.user ?? "")
            case .keytab: .keys(principal: credential.user ?? "")
            case .aws: .awsKeys
            }
        return .setCredential(name: name, kind, replaces: true)
    }

    /// An enrolled identity that a renewal has not reached for this time, in seconds, needs the person.
    private static let overdueSeconds = Day.seconds

    private var identityProblems: [StatusProblem] {
        guard let contents else { return [] }
        let enrolled = Set(contents.renewals.filter(\.isEnrolled).map(\.name))
        func remedy(_ name: String) -> Remedy {
            enrolled.contains(name) ? .renewIdentity(name: name) : .importIdentity(name: name, replaces: true)
        }
        let faults = contents.identities.map { $0.faults + $0.fileFaults } ?? []
        let overdue = contents.renewals.filter { state in
            state.need == .aging && state.isEnrolled && state.due + Self.overdueSeconds < now
        }
        return faults.map { StatusProblem(.identity, "client identity \"\($0.name)\": \($0.reason)", remedy($0.name)) }
            + overdue.map { state in
                StatusProblem(
                    .identity, "client identity \"\(state.name)\" has not been renewed since \(Day.text(state.due))",
                    .renewIdentity(name: state.name))
            }
    }

    private var signInProblems: [StatusProblem] {
        guard let contents else { return [] }
        let wipes = contents.wipes.map { name in
            StatusProblem(.wipe, "the wipe of \"\(name)\" was interrupted", .completeWipe(name: name))
        }
        return wipes
            + contents.signIns.compactMap { signIn in
                let name = signIn.name
                if let reason = signIn.unstored {
                    return StatusProblem(
                        .signIn, "sign-in \"\(name)\" is at risk until new tokens can be stored: \(reason)", [])
                }
                if signIn.hasEnded(at: now) {
                    let reason = signIn.ended.isEmpty ? "the access token has expired" : signIn.ended
                    return StatusProblem(
                        .signIn, "sign-in \"\(name)\" has ended: \(reason)", .signIn(name: name, stepUp: nil))
                }
                guard let compliance = signIn.compliance, !compliance.isCompliant else { return nil }
                return StatusProblem(
                    .device, "the device does not comply with the policy of \"\(name)\": \(compliance.title)",
                    .remediate(name: name))
            }
    }

    /// An expired access token has ended its sign-in.
    private func isReportedByItself(_ ending: Ending) -> Bool {
        if case .accessToken = ending.thing { true } else { false }
    }
}
