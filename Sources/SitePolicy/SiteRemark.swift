// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A line of the allowed-sites list that is valid, but has no effect or not the intended one.
package struct SiteRemark: Equatable, Sendable {
    /// `AllowedSites/work.sites:3: http without plaintext=yes: no challenge is answered there`.
    package let message: String
    package let hint: String
}

extension SiteList {
    /// Remarks about the lines, then about the requests that they are for, each in the order of the list. `credentials`
    /// and `identities` are the names in the home; nil if they are not known, because the vault is locked.
    package func remarks(credentials: Set<String>?, identities: Set<String>?) -> [SiteRemark] {
        rules.flatMap { $0.remarks(credentials: credentials, identities: identities) }
            + credentialClients.flatMap { $0.remarks(credentials: credentials, in: self) } + matchRemarks()
    }

    /// The same about one of the lines.
    package func remarks(on rule: SiteRule, credentials: Set<String>?, identities: Set<String>?) -> [SiteRemark] {
        rule.remarks(credentials: credentials, identities: identities) + matchRemarks(on: rule)
    }

    /// Remarks about files of `exe:` that no client can run, because they are scripts. `isScript` says whether the file
    /// at a path begins with `#!`, and is asked once for each path. About the line at `place` only, unless it is nil.
    package func scriptRemarks(at place: String? = nil, isScript: (String) -> Bool) -> [SiteRemark] {
        var known: [String: Bool] = [:]
        func isKnownScript(_ path: String) -> Bool {
            if let answer = known[path] { return answer }
            let answer = isScript(path)
            known[path] = answer
            return answer
        }
        let sites = rules.compactMap { rule in rule.clients.map { (rule.location, $0) } }
        let lines = (sites + credentialClients.map { ($0.location, $0.clients) }).filter {
            place == nil || $0.0 == place
        }
        return lines.flatMap { location, clients in
            clients.words.compactMap { word in
                guard case .executable(let path) = word, isKnownScript(path) else { return nil }
                return SiteRemark(
                    message: "\(location): \(word) is a script: the kernel runs its interpreter, and no client is this "
                        + "file",
                    hint: "start the script with the option --as NAME of exec and write token:NAME, or as a unit and "
                        + "write unit:NAME.service or user-unit:NAME.service")
            }
        }
    }
}

extension CredentialClients {
    package func remarks(credentials: Set<String>?, in list: SiteList) -> [SiteRemark] {
        var remarks = clients.interpreterRemarks(at: location) + clients.contradictions(at: location, with: nil)
        if let credentials, !credentials.contains(name) {
            remarks.append(
                SiteRemark(
                    message: "\(location): there is no credential \(PrintableText.quoteASCII(name))",
                    hint: "`countersign credential set \(name) --user USER` enrols it"))
        }
        if !list.rules.contains(where: { $0.credential == name }) {
            remarks.append(
                SiteRemark(
                    message: "\(location): no site gets credential \(PrintableText.quoteASCII(name))",
                    hint: "add credential=\(name) to a site's line, or remove this one"))
        }
        return remarks
    }
}

extension ClientRule {
    /// Remarks about the interpreters that the line at `location` permits.
    fileprivate func interpreterRemarks(at location: String) -> [SiteRemark] {
        permittedInterpreters.map { path in
            SiteRemark(
                message: "\(location): exe:\(path) is an interpreter: every script that it runs is permitted",
                hint: "name a program of its own, or use unit:, user-unit:, user: or token:")
        }
    }
}

extension SiteRule {
    fileprivate func remarks(credentials: Set<String>?, identities: Set<String>?) -> [SiteRemark] {
        var remarks: [SiteRemark] = []
        if pattern.scheme == .http, !answersPlaintext {
            remarks.append(
                SiteRemark(
                    message: "\(location): http without plaintext=yes: no challenge of \(pattern) is answered",
                    hint: "list https instead, or add plaintext=yes if a password may be sent without encryption"))
        }
        if pattern.scheme == .http, answersPlaintext,
            answer.allSatisfy({ [.bearer, .certificate, .pkeyauth].contains($0) })
        {
            remarks.append(
                SiteRemark(
                    message: "\(location): tokens and certificates are sent over https only: no challenge of "
                        + "\(pattern) is answered",
                    hint: "list https instead"))
        }
        remarks += clients?.interpreterRemarks(at: location) ?? []
        remarks += clients?.contradictions(at: location, with: credentialClients) ?? []
        if let credentials, credential != Self.defaultCredential, !credentials.contains(credential) {
            let secret =
                switch injection?.place {
                case .aws: "--aws-stdin"
                case .some: "--token-stdin"
                case nil: Set(answer.compactMap(\.credentialKind)) == [.token] ? "--token-stdin" : "--user USER"
                }
            remarks.append(
                SiteRemark(
                    message: "\(location): there is no credential \(PrintableText.quoteASCII(credential))",
                    hint: "`countersign credential set \(credential) \(secret)` enrols it"))
        }
        if let identities, let identity, !identities.contains(identity) {
            remarks.append(
                SiteRemark(
                    message: "\(location): there is no identity \(PrintableText.quoteASCII(identity))",
                    hint: "`countersign certificate import FILE --name \(identity)` adds it"))
        }
        return remarks
    }
}
