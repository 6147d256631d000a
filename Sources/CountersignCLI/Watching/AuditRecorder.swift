// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignAudit
import CountersignEvents
import CountersignHome
import CountersignVault
import Logging
import Synchronization

/// Writes the audit of `serve --audit`. The file is opened once the vault is open, whose key signs it: while the vault
/// is locked, no credential is used. A process that replaces another waits until that one has closed the file; uses
/// meanwhile are kept, or refused if they must be recorded.
final class AuditRecorder: CredentialUseRecorder {
    private enum File: Sendable {
        case closed
        case open(AuditFile)
        /// Closed for good: another process has it.
        case ended
        /// It cannot be opened.
        case faulty
    }

    private let path: String
    private let home: Home
    private let isRequired: Bool
    private let report: @Sendable (String) -> Void
    private let file = Mutex(File.closed)
    /// The uses before the file was open.
    private let kept = Mutex<[CredentialUse]>([])
    private static let keptLimit = 10_000

    /// `report` receives a sentence when records are lost, and when they can be written again.
    init(path: String, home: Home, isRequired: Bool, report: @escaping @Sendable (String) -> Void) {
        self.path = path
        self.home = home
        self.isRequired = isRequired
        self.report = report
    }

    /// Opens the file if the vault is open. Called by one thread at a time, off the event loops.
    func open(with vault: OpenVault?) throws(AuditError) {
        guard let vault, needsOpening else { return }
        let key = AuditKey(vault.auditKey)
        do throws(AuditError) {
            let opened = try AuditFile(path: path, key: key, isRequired: isRequired, report: report)
            publish(key.publicKey)
            file.withLock { file in
                if case .ended = file { return }
                file = .open(opened)
            }
            writeKept(to: opened)
        } catch {
            let isNews = file.withLock { file in
                defer { file = .faulty }
                if case .faulty = file { return false }
                return true
            }
            if isNews { throw error }
        }
    }

    private var needsOpening: Bool {
        switch file.withLock({ $0 }) {
        case .closed, .faulty: true
        case .open, .ended: false
        }
    }

    /// Writes the uses that came before the file was open.
    private func writeKept(to file: AuditFile) {
        let uses = kept.withLock { kept in
            defer { kept = [] }
            return kept
        }
        for use in uses { file.append(use) }
    }

    /// Writes the public key into the home, for `audit verify`.
    private func publish(_ key: AuditPublicKey) {
        do throws(CountersignError) {
            try home.file(AuditKeyOption.fileName).replace(with: Array(key.pem.utf8))
        } catch {
            report("the public key of the audit cannot be stored: \(error.detail)")
        }
    }

    /// Opens the file as soon as the vault is open, and reports why it cannot be opened.
    func keepOpening(with keeper: PolicyKeeper, _ logger: Logger) -> Task<Void, Never> {
        Task.detached { [self] in
            while !Task.isCancelled {
                do throws(AuditError) {
                    try open(with: keeper.vault)
                } catch {
                    logger.error("\(error.detail)", metadata: error.hint.map { ["hint": "\($0)"] })
                }
                do { try await Task.sleep(for: .seconds(1)) } catch { return }
            }
        }
    }

    /// Opens the file again, after it was renamed.
    func reopen() throws(AuditError) {
        guard case .open(let file) = file.withLock({ $0 }) else { return }
        try file.reopen()
    }

    /// Signs the last records. From now on, no credential may be used.
    func close() {
        let open = file.withLock { file -> AuditFile? in
            defer { file = .ended }
            if case .open(let open) = file { return open }
            return nil
        }
        open?.close()
    }

    // MARK: CredentialUseRecorder

    var refusal: String? {
        let file = file.withLock { $0 }
        if case .ended = file { return "the audit is closed" }
        guard isRequired else { return nil }
        return switch file {
        case .open(let file): file.refuses ? "the audit cannot be written, and every use must be recorded" : nil
        case .closed: "the audit is not open yet, and every use must be recorded"
        case .faulty: "the audit cannot be opened, and every use must be recorded"
        case .ended: nil
        }
    }

    func record(_ use: CredentialUseEvent) {
        switch file.withLock({ $0 }) {
        case .open(let file): file.append(CredentialUse(use))
        case .closed, .faulty: keep(CredentialUse(use))
        case .ended: report("a use of a credential was not recorded, because the audit was closed before it ended")
        }
    }

    private func keep(_ use: CredentialUse) {
        let isKept = kept.withLock { kept in
            guard kept.count < Self.keptLimit else { return false }
            kept.append(use)
            return true
        }
        if !isKept { report("a use of a credential was not recorded, because the audit is not open yet") }
        // It may have been opened meanwhile.
        if case .open(let file) = file.withLock({ $0 }) { writeKept(to: file) }
    }

    func secondPassed(now: UInt64) {
        if case .open(let file) = file.withLock({ $0 }) { file.secondPassed(now: now) }
    }
}

extension CredentialUse {
    fileprivate init(_ use: CredentialUseEvent) {
        let request = use.request
        self.init(
            time: use.time, uid: request.uid, pid: request.pid, program: use.program, cgroup: use.controlGroup,
            site: request.site.name, scheme: request.challenge ?? "unknown",
            credential: request.credential ?? "unknown", generation: use.generation, method: request.method,
            status: request.status, result: Result(use.result))
    }
}

extension CredentialUse.Result {
    fileprivate init(_ result: CredentialUseEvent.Result) {
        self =
            switch result {
            case .accepted: .accepted
            case .rejected: .rejected
            case .sent: .sent
            case .unanswered: .unanswered
            }
    }
}
