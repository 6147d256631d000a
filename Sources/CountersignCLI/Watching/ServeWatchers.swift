// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignAddresses
import CountersignCertificates
import CountersignClientSetup
import CountersignCryptography
import CountersignEvents
import CountersignHome
import CountersignJSON
import CountersignPrometheus
import CountersignNIO
import CountersignPage
import CountersignRouting
import CountersignSitePolicy
import CountersignVault
import FoundationEssentials
import Glibc
import Synchronization

/// What `serve` offers to those who watch it: events, metrics, the page, and the audit.
struct ServeWatchers: Sendable {
    let events: EventBoard
    let registry = PrometheusRegistry()
    let meter: ProxyMeter
    let inventory = SiteInventory()
    let approvals: Approvals
    /// Nil without `--audit`.
    let audit: AuditRecorder?
    let addresses = ListeningAddresses()

    /// `log` gets a sentence about each question to the person.
    init(audit: AuditRecorder?, log: @escaping @Sendable (String) -> Void) {
        let meter = ProxyMeter(ProxyMetrics(registry))
        self.meter = meter
        self.audit = audit
        events = EventBoard { meter.note($0) }
        approvals = Approvals(events, log: log)
    }

    /// For a proxy of `keeper`, whose home is read for each scrape and for the page. `routes`: nil without parents.
    func watchers(of keeper: PolicyKeeper, _ routes: RouteFinder?) -> Watchers {
        let home = keeper.home
        registry.onScrape { ProcessMetrics.current()?.write(to: &$0) }
        registry.onScrape { [events] in Self.measure(home, events, &$0) }
        var watchers = Watchers()
        watchers.meter = meter
        watchers.inventory = inventory
        watchers.recorder = audit
        watchers.questions = { [approvals] in approvals.waiting }
        watchers.approve = { [approvals] in approvals.answer($0, $1) }
        let services = PageServer.Services(
            state: { [inventory, approvals] in
                PageState(keeper: keeper, inventory: inventory, routes: routes, questions: approvals.waiting).json
            },
            metrics: { [registry] in registry.text() },
            browserScript: { [addresses] in
                addresses.forBrowsers.map { address in
                    let script = BrowserScript(
                        address: address, rules: keeper.policy.current.sites.rules, parents: routes?.settings)
                    return (BrowserScript.mediaType, Array(script.text.utf8))
                }
            },
            unreadiness: { [audit] in audit?.refusal ?? Self.unreadiness(of: keeper) },
            permit: { Self.permit($0, keeper) }, approve: { [approvals] in approvals.answer($0, $1) })
        watchers.page = PageServer(
            document: PackageResources.page_html, events: events, services: services,
            random: { Randomness.bytes($0) },
            now: {
                var time = timespec()
                clock_gettime(CLOCK_BOOTTIME, &time)
                return Int64(time.tv_sec)
            })
        return watchers
    }

    /// Why challenges cannot be answered.
    private static func unreadiness(of keeper: PolicyKeeper) -> String? {
        if keeper.isLocked { return "the vault is locked: run `countersign vault unlock`" }
        if keeper.isDryRun { return "nothing is answered, because of --dry-run" }
        if keeper.home.isPaused { return "answering is switched off: run `countersign resume`" }
        return nil
    }

    /// The gauges.
    private static func measure(_ home: Home, _ events: EventBoard, _ scrape: inout Scrape) {
        scrape.gauge("countersign.build", 1, [("countersign.version", ProductVersion.short)])
        scrape.counter("countersign.events.dropped", Double(events.droppedCount))
        let reader = StatusReader(home: home, secrets: SecretInput(isStandardInput: false), now: Int64(time(nil)))
        guard let status = try? reader.read() else { return }
        scrape.gauge("countersign.stopped", Double(status.blocked.count))
        scrape.gauge("countersign.vault.unlocked", status.isLockedInServer ? 0 : 1)
        scrape.gauge("countersign.paused", status.isPaused ? 1 : 0)
        if case .listed(let rules, _) = status.sites { scrape.gauge("countersign.sites", Double(rules.count)) }
        for ending in status.endings {
            let (kind, name) = ending.label
            scrape.gauge(
                "countersign.end", Double(ending.time), [("countersign.kind", kind), ("countersign.name", name)])
        }
    }

    /// As `trust allow` without --answer.
    private static func permit(
        _ request: PageServer.TrustRequest, _ keeper: PolicyKeeper
    ) -> (error: String, hint: String?)? {
        do {
            let host = try HostName(canonicalizing: request.host, for: .forwarded).text
            let leaf = try CertificateFingerprint.parse(request.fingerprint)
            guard let vault = keeper.vault else {
                return ("the vault is locked", "run `countersign vault unlock`")
            }
            let exception = TrustExceptionRecord(
                host: host, port: request.port, leafSHA256: leaf, until: nil, answers: false, made: Int64(time(nil)))
            try vault.update { try $0.setTrustException(exception) }
            keeper.refresh()
            return nil
        } catch {
            let diagnostic = Diagnostic.all(in: error).first
            return (diagnostic?.message ?? "\(error)", diagnostic?.hint)
        }
    }
}

/// Where a proxy listens, which is known later than who watches it.
final class ListeningAddresses: Sendable {
    private let addresses = Mutex<[String]>([])

    func set(_ addresses: [String]) { self.addresses.withLock { $0 = addresses } }

    /// Nil before the proxy listens, or if it does so only where no browser reaches it.
    var forBrowsers: String? { Watchers.addressForBrowsers(addresses.withLock(\.self)) }
}

extension Ending {
    /// The values of the labels of its metric.
    fileprivate var label: (kind: String, name: String) {
        switch thing {
        case .identity(let name, _): ("identity", name)
        case .anchor(_, let file): ("anchor", file)
        case .root: ("root", "root")
        case .accessToken(let name): ("signIn", name)
        }
    }
}

/// What the page shows besides the events.
struct PageState {
    let keeper: PolicyKeeper
    let inventory: SiteInventory
    let routes: RouteFinder?
    let questions: [QuestionEvent]

    /// A JSON object.
    var json: [UInt8] {
        let reader = StatusReader(
            home: keeper.home, secrets: SecretInput(isStandardInput: false), now: Int64(time(nil)))
        let status = (try? reader.read()).flatMap { try? Console.jsonLine(StatusReport($0)) } ?? "null\n"
        var object = JSONObject()
        object.add("sites", inventory.json)
        object.add("listed", keeper.policy.current.sites.rules.map(Self.line))
        object.add("questions", questions.map(\.json))
        if let routes { object.add("routes", PageRoutes(finder: routes, sites: inventory.names).json) }
        let rest = object.text
        return Array("{\"status\":\(status.dropLast()),\(rest.dropFirst())".utf8)
    }

    private static func line(_ rule: SiteRule) -> JSONObject {
        var object = JSONObject()
        object.add("rule", rule.location)
        object.add("site", rule.pattern.description)
        object.add("options", rule.options)
        return object
    }
}
