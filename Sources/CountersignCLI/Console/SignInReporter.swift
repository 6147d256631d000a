// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCryptography
import CountersignSignIn
import FoundationEssentials
import Glibc

/// Reports the progress of a sign-in: for people on standard error, or as JSON lines on standard output.
struct SignInReporter: Sendable {
    let isJSON: Bool
    let agent: UserAgentKind
    /// Whether the command reads the address to which a browser elsewhere is sent.
    var readsAddress = true
    /// False if the person opens the page.
    var opensBrowser = true

    /// One line of `--events`.
    private struct Line: Encodable {
        let event: String
        var issuer: String?
        var url: String?
        var code: String?
        var origin: String?
        var reason: String?
        var name: String?
        var account: String?
        var expires: String?
        var certificate: String?
        var missingScopes: String?
        var renewable: String?
    }

    var report: @Sendable (SignInEvent) -> Void {
        { event in isJSON ? write(line(event)) : show(event) }
    }

    private func show(_ event: SignInEvent) {
        switch event {
        case .started(let issuer): Console.log("info", "signing in at \(issuer)")
        case .page(let url) where agent == .embedded:
            Console.log("info", "a window shows this page:")
            Console.write("\(url)\n", to: STDERR_FILENO)
        case .page(let url):
            let how =
                opensBrowser
                ? "the browser opens this page; you can also open it yourself:" : "open this page in a browser:"
            Console.log("info", how)
            Console.write("\(url)\n", to: STDERR_FILENO)
            if readsAddress, Confirmation.hasTerminal {
                let condition = opensBrowser ? "if that browser is on another machine, " : ""
                Console.log("info", "\(condition)paste the address to which it is sent in the end")
            }
        case .agent(let event): show(event)
        case .code(let authorization):
            Console.log("info", "open this page in any browser, and enter the code \(authorization.userCode):")
            Console.write("\(authorization.verificationURL)\n", to: STDERR_FILENO)
            if let url = authorization.completeVerificationURL {
                Console.log("info", "or this one, which contains the code:")
                Console.write("\(url)\n", to: STDERR_FILENO)
            }
            show(code: (authorization.completeVerificationURL ?? authorization.verificationURL).description)
        case .redirectIgnored(let reason, let hint): Console.warning(reason, hint: hint)
        case .connectionRefused(let user):
            Console.warning(Self.refusal(of: user), hint: readsAddress ? Self.otherBrowser : nil)
        case .switchingToBroker: Console.log("info", "asking the identity broker of this machine")
        case .authorized:
            let agent = agent == .embedded ? "window" : "browser"
            Console.log("info", "the \(agent) has come back; fetching the tokens")
        case .finished: break
        case .notRevoked(let reason): Unrevoked.warn(of: "the new tokens", reason)
        }
    }

    private func show(_ event: UserAgentEvent) {
        switch event {
        case .notShown(let reason): Console.warning(reason)
        case .loadStarted(let url): Console.log("info", "the window loads \(url)")
        case .loadFinished: break
        case .loadFailed(let url, let reason): Console.warning("the window cannot load \(url): \(reason)")
        case .navigationRefused(let url, let reason, let hint):
            Console.warning("the window does not go to \(url): \(reason)", hint: hint)
        case .messageReceived(let origin): Console.log("info", "the page of \(origin) asks a question")
        case .specialURL(let subject): Console.log("info", "the page asks for \(subject)")
        case .sessionOpened(let url, let installsProfile):
            let purpose = installsProfile ? " to install a configuration profile" : ""
            Console.log("info", "a second window shows \(url)\(purpose)")
        case .sessionEnded: Console.log("info", "the second window is closed")
        case .profileInstalled(let sentence): Console.log("info", "a configuration profile is installed: \(sentence)")
        case .profileNotInstalled(let reason): Console.warning("the configuration profile is not installed: \(reason)")
        case .unavailable(let reason): Console.warning(reason)
        case .handedOff(let url):
            Console.log("info", "another program opens this address; you can also open it yourself:")
            Console.write("\(Console.printable(url))\n", to: STDERR_FILENO)
        case .othersOmitted: Console.warning("very much happens in the window; no more of it is shown here")
        }
    }

    /// Shows the address as a QR code, for a phone's camera, if the terminal can.
    private func show(code text: String) {
        guard let code = QRCode(text), code.fitsTerminal(ProcessInfo.processInfo.environment) else { return }
        // The colours are our own.
        Console.write(Array(code.lines.map { "\($0)\n" }.joined().utf8), to: STDERR_FILENO)
    }

    private func line(_ event: SignInEvent) -> Line {
        switch event {
        case .started(let issuer): Line(event: "started", issuer: issuer)
        case .page(let url): Line(event: "page", url: url.description)
        case .agent(.notShown(let reason)): Line(event: "page-not-shown", reason: reason)
        case .agent(.loadStarted(let url)): Line(event: "load-started", url: url)
        case .agent(.loadFinished(let url)): Line(event: "load-finished", url: url)
        case .agent(.loadFailed(let url, let reason)): Line(event: "load-failed", url: url, reason: reason)
        case .agent(.navigationRefused(let url, let reason, hint: _)):
            Line(event: "navigation-refused", url: url, reason: reason)
        case .agent(.messageReceived(let origin)): Line(event: "page-message", origin: origin)
        case .agent(.specialURL(let subject)): Line(event: "special-url", url: subject)
        case .agent(.sessionOpened(let url, installsProfile: _)): Line(event: "second-window-opened", url: url)
        case .agent(.sessionEnded): Line(event: "second-window-closed")
        case .agent(.profileInstalled(let sentence)): Line(event: "profile-installed", reason: sentence)
        case .agent(.profileNotInstalled(let reason)): Line(event: "profile-not-installed", reason: reason)
        case .agent(.unavailable(let reason)): Line(event: "unavailable", reason: reason)
        case .agent(.handedOff(let url)): Line(event: "handed-off", url: url)
        case .agent(.othersOmitted): Line(event: "others-omitted")
        case .code(let authorization):
            Line(
                event: "code",
                url: (authorization.completeVerificationURL ?? authorization.verificationURL).description,
                code: authorization.userCode)
        case .redirectIgnored(let reason, hint: _): Line(event: "redirect-ignored", reason: reason)
        case .connectionRefused(let user): Line(event: "connection-refused", reason: Self.refusal(of: user))
        case .switchingToBroker: Line(event: "switching-to-broker")
        case .authorized: Line(event: "authorized")
        case .finished: Line(event: "finished")
        case .notRevoked(let reason): Line(event: "not-revoked", reason: reason)
        }
    }

    private static func refusal(of user: UInt32?) -> String {
        let who = user.map { "user \($0)" } ?? "an unknown user"
        return "\(who) connected in place of your browser, and was refused"
    }

    private static let otherBrowser =
        "if your browser runs as another user, paste the address to which it is sent into the terminal"

    private func write(_ line: Line) {
        if let text = try? Console.jsonLine(line) { Console.result(text) }
    }

    /// The last lines. `certificate` is the sign-in's certificate.
    func stored(_ new: NewSignIn, _ certificate: ListedCertificate?, _ grant: GrantReport? = nil) {
        defer { if !isJSON { grant?.show() } }
        let expires = new.expires == 0 ? nil : WallClock.rfc3339(new.expires)
        guard !isJSON else {
            let missing = grant.map { $0.missing.joined(separator: " ") } ?? ""
            return write(
                Line(
                    event: "stored", issuer: new.issuer, name: new.name, account: new.account, expires: expires,
                    certificate: certificate.map { $0.notAfter.map(WallClock.rfc3339) ?? "pending" },
                    missingScopes: missing.isEmpty ? nil : missing, renewable: grant?.isFinal == true ? "no" : nil))
        }
        let account = new.account.isEmpty ? "" : " as \(Console.printable(new.account))"
        let sites = new.sites.count
        let count = sites == 0 ? "" : ", \(sites) \(sites == 1 ? "site" : "sites") added to the list"
        Console.result("signed in\(account) at \(new.issuer): \"\(new.name)\"\(count)\n")
        guard let certificate else { return }
        if let subject = certificate.subject, let notAfter = certificate.notAfter {
            Console.result(
                "certificate of identity \"\(new.name)\": \(Console.printable(subject)), "
                    + "valid until \(WallClock.rfc3339(notAfter))\n")
        } else {
            Console.warning(
                "\(certificate.server) has not yet decided about the certificate",
                hint: "`countersign serve` asks again, and so does `countersign certificate refresh \(new.name)`")
        }
    }
}
