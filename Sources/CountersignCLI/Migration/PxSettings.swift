// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The keys of px.ini.
enum PxSettings {
    private static let known = [
        "proxy": [
            "server", "pac", "pac_encoding", "listen", "port", "gateway", "hostonly", "allow", "noproxy", "useragent",
            "username", "auth",
        ],
        "client": ["client_username", "client_auth", "client_nosspi"],
        "settings": ["workers", "threads", "idle", "socktimeout", "proxyreload", "foreground", "log"],
    ]

    /// Why the others are left.
    private static let reasons = [
        "pac_encoding": "the encoding is that of the byte order mark or the Content-Type, or UTF-8 or ISO 8859-1",
        "allow": "only processes of your own user may connect; `serve` has --allow-user",
        "useragent": "requests are forwarded with the User-Agent of the client",
        "client_username": "clients need no password: the kernel names the owner of a connection",
        "client_auth": "clients need no password: the kernel names the owner of a connection",
        "client_nosspi": "it is for Windows",
        "workers": "there is one process", "threads": "`serve` has --threads, one or two by default",
        "idle": "connections that are not used are closed by fixed rules",
        "socktimeout": "`serve` has --origin-timeout, for the first byte of a response",
        "proxyreload": "scripts are read again when they expire and when the network changes",
        "foreground": "`serve` runs in the foreground, or as a service",
        "log": "`serve` has --access-log",
    ]

    static func add(_ entries: [ForeignLine], to plan: inout MigrationPlan) {
        let used = entries.filter { !$0.value.isEmpty }
        func entry(_ key: String) -> ForeignLine? {
            used.first { $0.section == "proxy" && $0.key.lowercased() == key }
        }
        if let user = entry("username") { addUser(user, to: &plan) }
        if let auth = entry("auth") {
            addAuth(auth, to: &plan)
        } else {
            // Without a user name, px has only the ticket.
            plan.answer = plan.user == nil ? ["negotiate"] : ["negotiate", "ntlm", "digest"]
        }
        addListen(entry("listen"), port: entry("port"), to: &plan)
        for entry in used where !["username", "auth", "listen", "port"].contains(entry.key.lowercased()) {
            add(entry, hasServer: used.contains { $0.key.lowercased() == "server" }, to: &plan)
        }
        if plan.parents.isEmpty { plan.addSystem() }
    }

    private static func add(_ entry: ForeignLine, hasServer: Bool, to plan: inout MigrationPlan) {
        let key = entry.key.lowercased()
        let section = entry.section ?? ""
        guard let keys = known[section] else {
            return plan.leave(entry, "px has no section [\(PrintableText.plain(section))]")
        }
        switch (section, key) {
        case ("proxy", "server"):
            for server in entry.text.split(separator: ",") {
                // px's default.
                let text = server.trimming(" \t")
                plan.addParent(text.isEmpty || text.contains(":") ? text : "\(text):80", entry)
            }
        case ("proxy", "pac"):
            if hasServer { return plan.leave(entry, "px uses server if both are set") }
            plan.addScript(entry.text, entry)
        case ("proxy", "noproxy"): plan.addNoProxy(entry.text.replacing(";", with: ","), entry)
        case ("proxy", "gateway"), ("proxy", "hostonly"):
            if entry.text == "0" {
                plan.take(entry, "only this machine may connect")
            } else {
                plan.leave(entry, "only this machine may connect, unless `serve` gets --unsafe-listen")
            }
        default: plan.leave(entry, among: keys.contains(key) ? reasons : [:], known: keys)
        }
    }

    /// `jdoe` or `ACME\jdoe`. px's own documentation has two backslashes.
    private static func addUser(_ entry: ForeignLine, to plan: inout MigrationPlan) {
        let parts = entry.text.split(separator: "\\", omittingEmptySubsequences: true)
        switch parts.count {
        case 1: plan.addUser(String(parts[0]), entry)
        case 2: plan.addUser(String(parts[1]), domain: String(parts[0]), entry)
        default:
            plan.refuse(
                entry, "\(MigrationPlan.shown(entry.text)) is not a user name", hint: "write ACME\\jdoe or jdoe")
        }
    }

    private static func addListen(_ address: ForeignLine?, port: ForeignLine?, to plan: inout MigrationPlan) {
        guard let entry = address ?? port else { return }
        let addresses = address?.text.split(separator: ",").map { $0.trimming(" \t") } ?? []
        for text in addresses.isEmpty ? [nil] : addresses.map(Optional.some) {
            let number = port?.text ?? "3128"
            plan.addListen(text, port: number, UInt16(number) == nil ? port ?? entry : entry)
        }
    }

    /// The words of curl's CURLOPT_HTTPAUTH, with px's prefixes NO, SAFENO and ONLY.
    private static func addAuth(_ entry: ForeignLine, to plan: inout MigrationPlan) {
        let schemes = [
            "NEGOTIATE": "negotiate", "KERBEROS": "negotiate", "NTLM": "ntlm", "DIGEST": "digest", "BASIC": "basic",
        ]
        let any = ["negotiate", "ntlm", "digest", "basic"]
        let word = entry.text.uppercased()
        func without(_ prefix: String, _ all: [String]) -> [String]? {
            guard word.hasPrefix(prefix), let scheme = schemes[String(word.dropFirst(prefix.count))] else { return nil }
            return all.filter { $0 != scheme }
        }
        if word == "NONE" {
            plan.answer = []
            return plan.take(entry, "parents are not listed, so their challenges go to the clients")
        }
        let found: [String]? =
            switch word {
            case "ANY": any
            case "ANYSAFE": any.dropLast()
            default:
                schemes[word].map { [$0] } ?? without("NO", any) ?? without("SAFENO", any.dropLast())
                    ?? (word.hasPrefix("ONLY") ? schemes[String(word.dropFirst(4))].map { [$0] } : nil)
            }
        guard let found else {
            return plan.refuse(
                entry, "\(MigrationPlan.shown(entry.text)) is no method that can be answered",
                hint: "write NEGOTIATE, NTLM, DIGEST, BASIC, ANY, ANYSAFE or NONE, or remove the line")
        }
        plan.answer = found
        plan.take(entry, "parents are answered with \(found.joined(separator: ", "))")
    }
}
