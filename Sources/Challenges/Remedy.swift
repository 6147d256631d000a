// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// An action with which a person can have a challenge answered. Messages print it as a sentence with its command; the
/// library has a value of its own for each, so that a program can offer a button.
package enum Remedy: Hashable, Sendable {
    /// The change to the line of a site.
    package enum LineChange: Hashable, Sendable {
        /// Add `plaintext=yes`.
        case permitPlaintext
        /// Add the scheme to `answer=`.
        case permitScheme(AuthenticationScheme)
        /// Add the page's origin to `cross-site=`.
        case permitPage(String)
        /// Extend `methods=` and `paths=`, or add another line for the site.
        case permitRequest
        /// Add the client to `for=`.
        case permitClient(String)
        /// Remove `intercept=no`.
        case intercept
        /// Store a credential of this kind under another name, and set `credential=`.
        case nameCredential(EnrolledCredential.Kind)
    }

    /// The kind of a credential, with its user name.
    package enum Contents: Hashable, Sendable {
        /// Nil if the user name is not known.
        case password(user: String?)
        case token
        case principal(String)
        /// A principal whose keys are in a file.
        case keys(principal: String)
        case awsKeys
    }

    /// Add a line with this content to the list, such as `http://printer.example plaintext=yes`.
    case addSite(String)
    /// `line` is the place of the site's line: `AllowedSites/work.sites:3`.
    case changeLine(LineChange, line: String)
    /// The scheme is answered over https only, and the host may have that, too.
    case useHTTPS(host: String)
    /// Store the credential of that name. `replaces`: in place of the stored secret.
    case setCredential(name: String, Contents, replaces: Bool)
    /// Permit an attempt with the credential of that name; nil for those that are blocked, Kerberos tickets among them.
    case permitRetry(name: String?)
    case unlockVault
    /// The home is paused.
    case resume
    /// Sign in again. `stepUp`: and ask for this, which may be scopes that the server does not name; nil if the token
    /// does not lack anything. `site`: for that site alone, such as `https://api.example`.
    case signIn(name: String, stepUp: StepUp?, site: String? = nil)
    /// Make the device comply with the policy of the sign-in of that name.
    case remediate(name: String)
    case completeWipe(name: String)
    /// Import a client identity. Nil if any name will do. `replaces`: in place of one of that name.
    case importIdentity(name: String?, replaces: Bool)
    case renewIdentity(name: String)
    case inspectIdentity(name: String)
    case listIdentities
    /// Trust the certification authority that has issued the certificate of a server.
    case addTrustAnchor
    /// Trust a server's certificate, if it is known to be the right one. `server` is `HOST` or `HOST:PORT`.
    case allowCertificate(server: String, fingerprint: String)
    /// Obtain a Kerberos ticket.
    case obtainTicket
    /// The client obtains a token itself from this URL, as programs for container registries do.
    case clientObtainsToken(from: String)
}

extension Remedy {
    /// The name that a credential has if none is given.
    package static let assumedName = "enrollment"

    /// The command for it, with its arguments; nil without one. Words in capitals stand for values that only the person
    /// knows.
    package var command: String? {
        switch self {
        case .addSite(let line): "countersign sites add \(line)"
        case .changeLine, .useHTTPS, .clientObtainsToken: nil
        case .setCredential(let name, let contents, _):
            "countersign credential set\(name == Self.assumedName ? "" : " \(Self.word(name))") \(Self.flag(contents))"
        case .permitRetry(let name): "countersign credential retry\(name.map { " \(Self.word($0))" } ?? "")"
        case .unlockVault: "countersign vault unlock"
        case .resume: "countersign resume"
        case .signIn(let name, let stepUp, let site):
            "countersign enroll \(Self.word(name))" + (stepUp.map(Self.options) ?? "")
                + (site.map { " --site \(Self.word($0))" } ?? "")
        case .remediate(let name): "countersign compliance remediate \(Self.word(name))"
        case .completeWipe(let name): "countersign wipe \(Self.word(name))"
        case .importIdentity(let name, let replaces):
            "countersign certificate import FILE" + (name.map { " --name \(Self.word($0))" } ?? "")
                + (replaces ? " --replace" : "")
        case .renewIdentity(let name): "countersign certificate refresh \(Self.word(name))"
        case .inspectIdentity(let name): "countersign certificate inspect \(Self.word(name))"
        case .listIdentities: "countersign certificate list"
        case .addTrustAnchor: "countersign trust anchor add FILE"
        case .allowCertificate(let server, let fingerprint):
            "countersign trust allow \(server) --fingerprint \(fingerprint) --answer"
        case .obtainTicket: "kinit"
        }
    }

    /// The command between backquotes and its effect, or another remedy. Without a full stop.
    package var sentence: String {
        let command = command.map { "`\($0)`" } ?? ""
        return switch self {
        case .addSite, .unlockVault, .resume, .addTrustAnchor: command
        case .changeLine(let change, let line): Self.sentence(change, line)
        case .useHTTPS(let host): "use https://\(host), if the site has that"
        case .setCredential(_, let contents, let replaces):
            command + (replaces ? Self.condition(contents) : "")
        case .permitRetry: "\(command) permits an attempt"
        case .signIn(_, let stepUp, _): stepUp == nil ? "\(command) signs you in again" : "\(command) asks for it"
        case .remediate: command
        case .completeWipe: "\(command) completes that"
        case .importIdentity(_, let replaces): "\(command) \(replaces ? "replaces it" : "adds one")"
        case .renewIdentity: "\(command) renews it"
        case .inspectIdentity: "\(command) shows it"
        case .listIdentities: "\(command) lists them"
        case .allowCertificate: "if you trust this certificate, \(command)"
        case .obtainTicket: "\(command) obtains a Kerberos ticket"
        case .clientObtainsToken(let url): "the client itself gets a token for it from \(url): log in with the client"
        }
    }

    /// The sentences of several alternatives.
    package static func sentence(_ remedies: [Remedy]) -> String? {
        remedies.isEmpty ? nil : remedies.map(\.sentence).joined(separator: ", or ")
    }

    private static func sentence(_ change: LineChange, _ line: String) -> String {
        switch change {
        case .permitPlaintext: "set plaintext=yes in \(line)"
        case .permitScheme(let scheme): "permit `\(scheme.rawValue)` with answer= in \(line)"
        case .permitPage(let page): "permit \(page) with cross-site= in \(line)"
        case .permitRequest: "permit the request with methods= and paths= in \(line), or in another line"
        case .permitClient(let word): "add `\(word.replacing("`", with: "%60"))` to for= in \(line)"
        case .intercept: "remove intercept=no in \(line)"
        case .nameCredential(let kind):
            "store a \(kind == .token ? "token" : "password") under another name, and set credential= in \(line)"
        }
    }

    private static func condition(_ contents: Contents) -> String {
        switch contents {
        case .password, .principal: " with the right password"
        case .token: " with a valid token"
        case .keys, .awsKeys: " with the right keys"
        }
    }

    private static func options(_ stepUp: StepUp) -> String {
        var options = stepUp.scopes.map { " --scope \(word($0))" }
        if let claims = stepUp.claims { options.append(" --claims \(Base64URL.encode(Array(claims.utf8)))") }
        if !stepUp.acrValues.isEmpty {
            options.append(" --acr-values \(word(stepUp.acrValues.joined(separator: " ")))")
        }
        if let maxAge = stepUp.maxAge { options.append(" --max-age \(maxAge)") }
        return options.isEmpty ? " --scope SCOPE" : options.joined()
    }

    private static func flag(_ contents: Contents) -> String {
        switch contents {
        case .password(let user): "--user \(user.map(word) ?? "USER")"
        case .token: "--token-stdin"
        case .principal(let principal): "--principal \(word(principal))"
        case .keys(let principal): "--principal \(word(principal)) --keytab FILE"
        case .awsKeys: "--aws-stdin"
        }
    }

    /// A backquote would end the command in the message.
    private static func word(_ text: String) -> String { ShellWord.quoted(text.replacing("`", with: "?")) }
}
