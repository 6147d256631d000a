// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The keys of cntlm.conf. cntlm does not distinguish upper and lower case.
enum CntlmSettings {
    private static let taken = [
        "Username", "Domain", "Password", "Proxy", "NoProxy", "Listen", "Pac", "Auth", "Gateway",
    ]

    /// Why the others are left.
    private static let reasons = [
        "passlm": "an LM hash, for NTLMv1 only, which is never answered; the vault keeps passwords, not hashes",
        "passnt": "an NT hash, with which cntlm answers NTLMv1; the vault keeps passwords, not hashes",
        "passntlmv2": "a hash of the password, the user and the domain; the vault keeps passwords, not hashes",
        "workstation": "no workstation name is sent to parents",
        "socks5proxy": "there is no SOCKS server: point its clients to the HTTP proxy",
        "socks5user": "there is no SOCKS server",
        "tunnel": "there are no fixed tunnels: use a client that sends CONNECT",
        "allow": "only processes of your own user may connect; `serve` has --allow-user",
        "deny": "only processes of your own user may connect",
        "header": "requests are forwarded with the fields of the client",
        "flags": "the flags of NTLM are negotiated",
        "isascannersize": "there is no handling of the pages of GFI WebMonitor",
        "isascanneragent": "there is no handling of the pages of GFI WebMonitor",
        "ntlmtobasic": "sites are answered from the vault: `countersign sites add URL` lists them",
        "sspi": "it is for Windows",
        "tracefile": "there is no trace of contents; `serve` has --access-log",
    ]

    static func knows(_ key: String) -> Bool {
        taken.contains { $0.lowercased() == key.lowercased() } || reasons[key.lowercased()] != nil
    }

    private static let known =
        taken + [
            "PassLM", "PassNT", "PassNTLMv2", "Workstation", "SOCKS5Proxy", "SOCKS5User", "Tunnel", "Allow", "Deny",
            "Header", "Flags", "ISAScannerSize", "ISAScannerAgent", "NTLMToBasic", "SSPI",
        ]

    static func add(_ entries: [ForeignLine], to plan: inout MigrationPlan) {
        plan.answer = ["ntlm"]
        // A script comes before the proxies, as in cntlm.
        for entry in entries where entry.key.lowercased() == "pac" { plan.addScript(entry.text, entry) }
        for entry in entries where entry.key.lowercased() != "pac" { add(entry, to: &plan) }
        if plan.parents.isEmpty, plan.problems.isEmpty {
            plan.refuseFile(
                "no line names a parent: there is neither Proxy nor Pac", hint: "add a line such as: Proxy HOST:PORT")
        }
        if plan.user == nil, plan.answer == ["ntlm"] { plan.answer = [] }
    }

    private static func add(_ entry: ForeignLine, to plan: inout MigrationPlan) {
        switch entry.key.lowercased() {
        case "username": plan.addUser(entry.text, entry)
        case "domain": plan.addDomain(entry.text, entry)
        case "password": plan.addPassword(entry.value, entry)
        case "proxy": plan.addParent(entry.text, entry)
        case "noproxy": plan.addNoProxy(entry.text, entry)
        case "listen": addListen(entry, to: &plan)
        case "auth": addAuth(entry, to: &plan)
        case "gateway":
            if entry.text.lowercased() == "no" {
                plan.take(entry, "only this machine may connect")
            } else {
                plan.leave(entry, "only this machine may connect, unless `serve` gets --unsafe-listen")
            }
        default: plan.leave(entry, among: reasons, known: known)
        }
    }

    /// `PORT` or `ADDRESS:PORT`.
    private static func addListen(_ entry: ForeignLine, to plan: inout MigrationPlan) {
        let text = entry.text
        guard let colon = text.lastIndex(of: ":") else { return plan.addListen(nil, port: text, entry) }
        plan.addListen(String(text[..<colon]), port: String(text[text.index(after: colon)...]), entry)
    }

    private static func addAuth(_ entry: ForeignLine, to plan: inout MigrationPlan) {
        switch entry.text.lowercased() {
        case "ntlm", "ntlmv2": plan.take(entry, "parents are answered with NTLMv2")
        case "gss":
            plan.answer = ["negotiate"]
            plan.take(entry, "parents are answered with Negotiate")
        case "nt", "lm", "ntlm2sr":
            plan.leave(entry, "this is NTLMv1, which is never answered; parents are answered with NTLMv2")
        default:
            plan.refuse(
                entry, "\(PrintableText.quote(entry.text)) is no method of cntlm",
                hint: "write NTLMv2 or GSS, or remove the line")
        }
    }
}
