// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Synchronization

/// A browser that visits pages of several origins. They all send requests to sites with each kind of credential.
final class ForeignPageVisit: Sendable {
    enum Program: String, Sendable { case chromium, firefox }

    /// The sites, which are the same for all visits.
    final class Sites: Sendable {
        private static let made = Result { try Sites() }

        static var shared: Sites { get throws { try made.get() } }

        let origins: Origins
        let pages: PageSite
        let kerberos: ApacheKerberosOrigin
        let realm: KerberosRealm
        /// A site per kind of credential.
        let targets: [PageSite.Target]

        private init() throws {
            origins = try Origins.shared
            pages = try PageSite(user: Countersign.user, password: Countersign.password)
            realm = try KerberosRealm(services: ["HTTP/www.test.localhost"])
            kerberos = try ApacheKerberosOrigin(realm)
            try realm.kinit(cache: "tickets")
            let (apache, nginx) = (origins.apache, origins.nginx)
            targets = [
                .init(
                    kind: "basic", url: "https://basic.test.localhost:\(apache.httpsPort)/basic/index",
                    socket: "wss://basic.test.localhost:\(apache.httpsPort)/basic/websocket"),
                .init(kind: "digest", url: "https://digest.test.localhost:\(apache.httpsPort)/digest/index"),
                .init(kind: "ntlm", url: "https://ntlm.test.localhost:\(origins.ntlm.port)/page.html"),
                .init(kind: "negotiate", url: "\(kerberos.url)/kerberos/index"),
                .init(kind: "bearer", url: "https://bearer.test.localhost:\(nginx.httpsPort)/bearer/x"),
                .init(
                    kind: "certificate", url: "https://cert12.test.localhost:\(nginx.mutual12Port)/who",
                    socket: "wss://cert12.test.localhost:\(nginx.mutual12Port)/websocket"),
                .init(kind: "session", url: "https://session.test.localhost:\(pages.port)/session"),
                .init(kind: "api", url: "https://api.test.localhost:\(pages.port)/api"),
                .init(kind: "named", url: "https://api.test.localhost:\(pages.port)/api-named"),
            ]
        }

        /// A page of another site, of an unlisted and of a listed one of the same site, and one that a line names.
        func origin(_ page: String) -> String {
            switch page {
            case "evil": "http://evil.localhost:\(pages.plainPort)"
            case "app": "http://app.localhost:\(pages.plainPort)"
            default: "https://\(page).test.localhost:\(pages.port)"
            }
        }

        func user() throws -> Countersign {
            let user = try Countersign()
            try user.enroll()
            try user.succeed("credential", "set", "api", "--token-stdin", input: NginxOrigin.token)
            try user.importIdentity("laptop")
            let options = [
                "basic": "answer=basic", "digest": "answer=digest", "ntlm": "answer=ntlm domain=ACME",
                "negotiate": "answer=negotiate", "bearer": "answer=bearer credential=api",
                "certificate": "answer=certificate", "session": "answer=none session=corp cookies=sid",
                "api": "answer=basic cross-site=\(origin("app"))",
            ]
            for target in targets {
                guard let options = options[target.kind], let site = target.url.firstMatch(of: #/https://[^/]*/#) else {
                    continue
                }
                try user.allow("\(site.0) \(options)")
            }
            try user.allow("\(origin("wiki")) answer=none")
            return user
        }
    }

    static let strangers = ["evil", "blog"]
    /// The kinds of credential whose sites links and forms lead to.
    static let linkedKinds = ["basic", "ntlm", "certificate", "session", "api"]
    /// One browser at a time: each of them keeps a machine busy.
    private static let turn = Mutex(())

    private static let chromium = Result { try ForeignPageVisit(.chromium, hasProxy: true) }
    private static let firefox = Result { try ForeignPageVisit(.firefox, hasProxy: true) }
    private static let alone = Result { try ForeignPageVisit(.chromium, hasProxy: false) }

    /// Waits on a thread of its own, so that other tests go on during the visit.
    static func shared(_ program: Program, hasProxy: Bool = true) async throws -> ForeignPageVisit {
        try await Command.detached { try (hasProxy ? program == .chromium ? chromium : firefox : alone).get() }
    }

    let sites: Sites
    let name: String
    private let folder: TemporaryFolder
    private let proxy: RunningProxy?

    private init(_ program: Program, hasProxy: Bool) throws {
        sites = try .shared
        name = "\(program.rawValue)-\(hasProxy ? "proxy" : "alone")"
        folder = try TemporaryFolder(name)
        if hasProxy {
            let user = try sites.user()
            let proxy = try user.serve(environment: sites.realm.environment(cache: "tickets"))
            self.proxy = proxy
            // The answers are known before the first page is opened, and there is a session.
            for target in sites.targets { _ = try proxy.get("\(target.url)?warm") }
            _ = try proxy.get("https://session.test.localhost:\(sites.pages.port)/session/start")
        } else {
            proxy = nil
        }
        let pages = try urls(signsIn: !hasProxy)
        try Self.turn.withLock { _ in try visit(program, pages) }
    }

    /// The pages in the order of the visit: first those that the person opens.
    private func urls(signsIn: Bool) throws -> [String] {
        var urls = sites.targets.map { "\($0.url)?\(query("typed", $0.kind, "GET"))" }
        if signsIn { urls.append("https://session.test.localhost:\(sites.pages.port)/session/start") }
        for page in Self.strangers + ["wiki"] {
            urls.append(try sites.pages.page(of: sites.origin(page), id: id(page), sites.targets))
        }
        for kind in ["api", "session"] {
            let own = sites.targets.filter { $0.kind == kind }
            urls.append(try sites.pages.page(of: sites.origin(kind), id: id(kind), own))
        }
        let api = sites.targets.filter { ["api", "named"].contains($0.kind) }
        urls.append(try sites.pages.page(of: sites.origin("app"), id: id("app"), api))
        for page in Self.strangers {
            for target in sites.targets where Self.linkedKinds.contains(target.kind) {
                for method in ["GET", "POST"] {
                    let url = "\(target.url)?\(query(page, target.kind, "top-\(method)"))"
                    urls.append(try sites.pages.page(of: sites.origin(page), leadingTo: url, method: method))
                }
            }
        }
        return urls
    }

    private func visit(_ program: Program, _ urls: [String]) throws {
        var arguments = [Tool.client("visit_\(program.rawValue).py"), folder.path]
        switch program {
        case .chromium:
            _ = try Tool.path("chromium")
            arguments += [proxy?.url ?? "-", proxy == nil ? "\(Countersign.user):\(Countersign.password)" : "-"]
        case .firefox:
            _ = try Tool.path("firefox-esr")
            try folder.write("profile/.keep", "")
            arguments += [folder.file("profile"), proxy?.url ?? "-"]
        }
        let done = try Command.run(
            Tool.python(), arguments, input: urls.joined(separator: "\n") + "\n", in: folder, seconds: 900)
        guard done.status == 0 else { throw HarnessError("\(arguments[0]): \(done.said)") }
    }

    private func id(_ page: String) -> String { "\(name)-\(page)" }

    private func query(_ page: String, _ kind: String, _ cell: String) -> String { "\(id(page)).\(kind).\(cell)" }

    // MARK: Results

    /// Every way in which a page has sent a request: how often it reached the site, and whether with a credential.
    struct Cell: CustomStringConvertible {
        let page: String
        let kind: String
        let way: String
        let hadCredential: Bool

        var description: String { "\(page) \(kind) \(way)\(hadCredential ? " as the person" : "")" }
    }

    var cells: [Cell] {
        let logs = [
            sites.origins.nginx.log, sites.origins.apache.log, sites.origins.ntlm.log, sites.kerberos.log,
            sites.pages.log,
        ]
        var cells: [String: Cell] = [:]
        for request in logs.flatMap(\.requests) {
            guard let query = request.path?.split(separator: "?").dropFirst().first, query.hasPrefix("\(name)-") else {
                continue
            }
            let words = query.dropFirst(name.utf8.count + 1).split(separator: ".").map(String.init)
            guard words.count == 3 else { continue }
            let had = cells[String(query)]?.hadCredential ?? false
            cells[String(query)] = Cell(
                page: words[0], kind: words[1], way: words[2], hadCredential: had || request.hasCredential)
        }
        return cells.values.sorted { $0.description < $1.description }
    }

    func hadCredential(_ page: String, _ kind: String, _ way: String) -> Bool {
        cells.contains { $0.page == page && $0.kind == kind && $0.way == way && $0.hadCredential }
    }

    /// The content that a page could read in this way.
    func read(_ page: String, _ kind: String, _ way: String) -> String? {
        sites.pages.results[query(page, kind, way)]
    }
}
