// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The variables and flags of alpaca. It finds its parents by a script alone, so that none can be listed.
enum AlpacaSettings {
    static func add(_ entries: [ForeignLine], to plan: inout MigrationPlan) {
        guard !entries.isEmpty else {
            if plan.problems.isEmpty {
                plan.refuseFile(
                    "no line has a variable or flag of alpaca",
                    hint: "name the file with NTLM_CREDENTIALS or the command `alpaca -C URL`")
            }
            return
        }
        let address = entries.last { $0.key == "-l" }
        let port = entries.last { $0.key == "-p" }
        if let entry = port ?? address { plan.addListen(address?.text, port: port?.text ?? "3128", entry) }
        let hasPassword = entries.contains { $0.key == "BASIC_CREDENTIALS" }
        plan.answer = ["negotiate", "ntlm"] + (hasPassword ? ["basic"] : [])
        for entry in entries { add(entry, to: &plan) }
        if plan.parents.isEmpty { plan.addSystem() }
    }

    private static func add(_ entry: ForeignLine, to plan: inout MigrationPlan) {
        switch entry.key {
        case "-C":
            if plan.parents.isEmpty {
                plan.addScript(entry.text, entry)
            } else {
                plan.leave(entry, "a second script")
            }
        case "-d": plan.addDomain(entry.text, entry)
        case "-u": plan.addUser(entry.text, entry)
        case "-p", "-l": break
        case "NTLM_CREDENTIALS": addHash(entry, to: &plan)
        case "BASIC_CREDENTIALS": addBasic(entry, to: &plan)
        case "-H", "-q", "-version": plan.leave(entry, "it changes no setting")
        default: plan.leave(entry, "alpaca has no such variable")
        }
    }

    /// `jdoe@ACME:` and 32 hexadecimal digits.
    private static func addHash(_ entry: ForeignLine, to plan: inout MigrationPlan) {
        guard let colon = entry.value.lastIndex(of: UInt8(ascii: ":")),
            case let account = String(decoding: entry.value[..<colon], as: UTF8.self),
            let sign = account.lastIndex(of: "@")
        else {
            return plan.refuse(
                entry, "NTLM_CREDENTIALS is not of the form USER@DOMAIN:HASH",
                hint: "`alpaca -d DOMAIN -u USER -H` prints it")
        }
        let domain = account[account.index(after: sign)...]
        plan.addUser(String(account[..<sign]), domain: domain.isEmpty ? nil : String(domain), entry)
        plan.leave(entry, "the hash in it: the vault keeps passwords, not hashes")
    }

    /// `jdoe:password`.
    private static func addBasic(_ entry: ForeignLine, to plan: inout MigrationPlan) {
        guard let colon = entry.value.firstIndex(of: UInt8(ascii: ":")) else {
            return plan.refuse(entry, "BASIC_CREDENTIALS is not of the form USER:PASSWORD", hint: "write a colon")
        }
        let name = String(decoding: entry.value[..<colon], as: UTF8.self)
        plan.addUser(name, entry)
        if plan.user == name { plan.addPassword(entry.value[entry.value.index(after: colon)...], entry) }
    }
}
