// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignParents
import CountersignVault

/// What `countersign migrate` takes over from a file, and what it leaves, line by line.
struct MigrationPlan {
    /// A line that was understood. Contains no password.
    struct Finding: Equatable, Encodable {
        /// From 1.
        let line: Int
        let key: String
        let isTaken: Bool
        /// What it becomes, or why it is left.
        let text: String
    }

    /// A password in the file.
    struct Password {
        let line: Int
        let value: ArraySlice<UInt8>
    }

    let product: ForeignProduct
    /// The folder of the file, an absolute path: scripts with relative paths are in it.
    let folder: String
    private(set) var findings: [Finding] = []
    private(set) var problems: [ForeignProblem] = []

    /// The value of `--listen`; nil for the default.
    private(set) var listen: String?
    /// The elements of `--parent`, in order.
    private(set) var parents: [String] = []
    /// The parents that a line of the list of sites can name.
    private(set) var proxies: [ParentProxy] = []
    /// The elements of `--no-proxy`.
    private(set) var noProxy: [String] = []
    private(set) var user: String?
    private(set) var domain: String?
    private(set) var password: Password?
    /// The schemes with which parents are answered; empty if they are not.
    var answer: [String] = []

    static let credential = "parent"
    private static let defaultListen = "127.0.0.1:3128"

    /// Reads a whole file. Throws ``ForeignFault`` with all faults in it.
    static func read(
        _ bytes: [UInt8], of product: ForeignProduct, in folder: String
    ) throws(ForeignFault) -> MigrationPlan {
        let lines = try ForeignFile.lines(bytes)
        var plan = MigrationPlan(product: product, folder: folder)
        let (entries, problems) =
            switch product {
            case .px: INIReader.read(lines)
            case .cntlm: CntlmReader.read(lines)
            case .alpaca: ShellReader.read(lines)
            }
        plan.problems = problems
        switch product {
        case .px: PxSettings.add(entries, to: &plan)
        case .cntlm: CntlmSettings.add(entries, to: &plan)
        case .alpaca: AlpacaSettings.add(entries, to: &plan)
        }
        guard plan.problems.isEmpty else {
            throw ForeignFault(plan.problems.sorted { $0.line < $1.line })
        }
        return plan
    }

    private init(product: ForeignProduct, folder: String) {
        self.product = product
        self.folder = folder
    }

    // MARK: Results

    /// The user name of the credential: `ACME\jdoe`, or `jdoe` without a domain.
    var credentialUser: String? {
        user.map { user in domain.map { "\($0)\\\(user)" } ?? user }
    }

    /// The options of `serve`, without dashes, and their values. Their variables are those of ``ServeEnvironment``.
    var options: [(name: String, value: String)] {
        [
            ("listen", listen), ("parent", parents.isEmpty ? nil : parents.joined(separator: ",")),
            ("no-proxy", noProxy.isEmpty ? nil : noProxy.joined(separator: ",")),
        ].compactMap { name, value in value.map { (name, $0) } }
    }

    /// Whether parents are answered with a password. Negotiate alone has the ticket.
    var hasCredential: Bool { user != nil && answer != ["negotiate"] }

    /// The lines of the list of sites that let the parents be answered.
    var siteLines: [String] {
        guard !answer.isEmpty else { return [] }
        return proxies.map { proxy in
            let words = [
                proxy.site.description, "answer=\(answer.joined(separator: ","))",
                hasCredential ? "credential=\(Self.credential)" : nil,
                // Negotiate and SOCKS need no permission; over TLS, nothing does.
                proxy.kind == .http && answer != ["negotiate"] ? "plaintext=yes" : nil,
            ]
            return words.compactMap(\.self).joined(separator: " ")
        }
    }

    // MARK: Adding

    mutating func take(_ entry: ForeignLine, _ text: String) {
        findings.append(Finding(line: entry.number, key: entry.key, isTaken: true, text: text))
    }

    mutating func leave(_ entry: ForeignLine, _ reason: String) {
        findings.append(Finding(line: entry.number, key: entry.key, isTaken: false, text: reason))
    }

    mutating func refuse(_ entry: ForeignLine, _ reason: String, hint: String? = nil) {
        problems.append(ForeignProblem(entry.number, reason, hint: hint))
    }

    mutating func refuseFile(_ reason: String, hint: String) {
        problems.append(ForeignProblem(0, reason, hint: hint))
    }

    /// Adds a key that the product does not have, or that has no meaning here.
    mutating func leave(_ entry: ForeignLine, among reasons: [String: String], known: [String]) {
        if let reason = reasons[entry.key.lowercased()] { return leave(entry, reason) }
        let meant = SpellingHint.closest(to: entry.key.lowercased(), among: known.map { $0.lowercased() })
        let name = meant.flatMap { meant in known.first { $0.lowercased() == meant } }
        leave(entry, "\(product.rawValue) has no such key" + (name.map { "; did you mean \($0)?" } ?? ""))
    }

    /// Adds a proxy, `HOST:PORT` or a URL.
    mutating func addParent(_ text: String, _ entry: ForeignLine) {
        let url = text.contains("://") ? text : "http://\(text)"
        do throws(ParentsError) {
            for source in try ParentSource.parse([url]) {
                guard case .hop(.parent(let proxy)) = source else { continue }
                guard !proxies.contains(proxy) else {
                    leave(entry, "\(proxy) is already taken")
                    continue
                }
                proxies.append(proxy)
                parents.append(proxy.description)
                take(entry, "parent \(proxy)")
            }
        } catch {
            refuse(entry, Self.withoutSetting(error.detail), hint: error.hint ?? "write HOST:PORT")
        }
    }

    /// Adds a proxy auto-configuration script, an http or https URL or a path.
    mutating func addScript(_ text: String, _ entry: ForeignLine) {
        if text.dropFirst().hasPrefix(":\\") || text.dropFirst().hasPrefix(":/") && !text.contains("://") {
            return refuse(
                entry, "\(PrintableText.quote(text)) is a path of Windows", hint: "copy the script, and name the copy")
        }
        let path = text.contains("://") || text.hasPrefix("/") ? text : "\(folder)/\(text)"
        do throws(ParentsError) {
            _ = try ParentSource.parse(["pac:\(path)"])
            parents.append("pac:\(path)")
            take(entry, "parent pac:\(path)")
        } catch {
            refuse(entry, Self.withoutSetting(error.detail), hint: "write an http or https URL, or the path of a file")
        }
    }

    /// Adds the settings of the desktop or the environment, which the product uses if its file names no parent.
    mutating func addSystem() { parents.append("system") }

    mutating func addNoProxy(_ list: String, _ entry: ForeignLine) {
        let elements = NoProxyTranslation.elements(list)
        for element in elements {
            switch NoProxyTranslation.translate(element) {
            case .taken(let translated):
                if noProxy == ["*"] && translated != "*"
                    || translated == "*" && (noProxy.contains { $0 != "*" } || elements.count > 1)
                {
                    refuse(entry, "* stands beside other hosts", hint: "leave * alone, or remove it")
                } else if !noProxy.contains(translated) {
                    noProxy.append(translated)
                    take(entry, element == translated ? "direct: \(element)" : "direct: \(element), as \(translated)")
                }
            case .left(let reason): leave(entry, "\(PrintableText.plain(element)): \(reason)")
            }
        }
    }

    /// Adds an address to listen on. `address` is nil if the product names only a port.
    mutating func addListen(_ address: String?, port: String, _ entry: ForeignLine) {
        guard let number = UInt16(port), number > 0 else {
            return refuse(
                entry, "\(Self.shown(port)) is not a port from 1 to 65535",
                hint: "write a number, such as 3128")
        }
        let host = address == nil || address == "localhost" ? "127.0.0.1" : address ?? ""
        let text = "\(host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host):\(number)"
        guard let parsed = try? ListenAddress(parsing: text) else {
            return refuse(
                entry, "\(Self.shown(text)) is not an address to listen on",
                hint: "write an address of this machine, such as 127.0.0.1, or only the port")
        }
        guard parsed.isLocal else {
            return leave(
                entry,
                "\(text) is not a loopback address: `countersign serve` listens there only with --unsafe-listen "
                    + "and --client-token-file")
        }
        guard !hasListen else {
            return leave(entry, "COUNTERSIGN_LISTEN has room for one address: add --listen \(text) to the command")
        }
        hasListen = true
        if text == Self.defaultListen { return take(entry, "listen \(text), the default") }
        listen = text
        take(entry, "listen \(text)")
    }

    private var hasListen = false

    mutating func addUser(_ text: String, domain: String? = nil, _ entry: ForeignLine) {
        guard VaultLimits.isUser(text), domain.map(VaultLimits.isUser) ?? true else {
            return refuse(
                entry, "the user name is empty, too long, or has a control character", hint: "write it as jdoe")
        }
        if let earlier = user, earlier != text {
            return leave(entry, "a second user name; \(PrintableText.plain(earlier)) is taken")
        }
        user = text
        if let domain { self.domain = domain }
        take(entry, "user name \(PrintableText.plain(credentialUser ?? text))")
    }

    mutating func addDomain(_ text: String, _ entry: ForeignLine) {
        guard VaultLimits.isUser(text), !text.contains("\\") else {
            return refuse(entry, "the domain is empty, or has a backslash", hint: "write it as ACME")
        }
        domain = text
        take(entry, "domain \(PrintableText.plain(text))")
    }

    /// A password in clear, which gets into the vault only if the person agrees.
    mutating func addPassword(_ value: ArraySlice<UInt8>, _ entry: ForeignLine) {
        guard !value.isEmpty, value.count <= VaultLimits.passwordBytes else {
            return refuse(entry, "the password is empty or too long", hint: "remove the line")
        }
        password = password ?? Password(line: entry.number, value: value)
    }

    /// A faulty value, for an error. One with blanks may be several lines that belong to other keys: it is not shown.
    static func shown(_ text: String) -> String {
        text.contains(where: \.isWhitespace) ? "the value" : PrintableText.quote(text)
    }

    /// `ParentSource` begins its errors with the name of the option.
    private static func withoutSetting(_ detail: String) -> String {
        detail.hasPrefix("--parent: ") ? String(detail.dropFirst("--parent: ".count)) : detail
    }
}
