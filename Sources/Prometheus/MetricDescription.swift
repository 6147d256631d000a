// SPDX-License-Identifier: Apache-2.0

package enum MetricKind: String, Sendable {
    case counter, gauge, histogram
}

/// A metric as the text format describes it.
package struct MetricDescription: Sendable {
    /// The label in swift-metrics.
    package let label: String
    package let kind: MetricKind
    /// The name in Prometheus.
    package let name: String
    package let help: String
    /// The names of its attributes in Prometheus. Empty if the metric is not of this program.
    package let attributes: [String]
    /// Whether the values of a histogram are seconds.
    let isDuration: Bool

    /// A metric of the table of ``known`` ones has its name and help; others get a name by the general rule.
    init(_ label: String, _ kind: MetricKind, isDuration: Bool = false) {
        if let known = Self.byLabel[label], known.kind == kind {
            self = known
        } else {
            self.init(label, kind, isDuration: isDuration, help: "Metric \(label) of swift-metrics.", [])
        }
    }

    private init(
        _ label: String, _ kind: MetricKind, isDuration: Bool = false, name: String? = nil, help: String,
        _ attributes: [String]
    ) {
        self.label = label
        self.kind = kind
        self.name = name ?? PrometheusName.metric(label, kind, isDuration: isDuration)
        self.help = help
        self.attributes = attributes.map(PrometheusName.label)
        self.isDuration = isDuration
    }

    /// The names of its lines.
    package var sampleNames: [String] {
        kind == .histogram ? [name, name + "_bucket", name + "_sum", name + "_count"] : [name]
    }

    // MARK: Table

    private static let byLabel = Dictionary(uniqueKeysWithValues: known.map { ($0.label, $0) })

    /// The metrics of this program.
    package static let known = [
        MetricDescription(
            "http.server.request.duration", .histogram, isDuration: true,
            help: "Time from the request to the end of its response, in seconds.",
            ["http.request.method", "http.response.status_code", "countersign.decision", "countersign.site"]),
        MetricDescription(
            "countersign.answers", .counter, help: "Challenges that were answered.",
            ["countersign.scheme", "countersign.site"]),
        MetricDescription(
            "countersign.refusals", .counter, help: "Challenges that were not answered, by the check that failed.",
            ["countersign.check", "countersign.site"]),
        MetricDescription(
            "countersign.rejections", .counter, help: "Credentials that a site has rejected.",
            ["countersign.scheme", "countersign.site"]),
        MetricDescription(
            "countersign.untrusted", .counter, help: "Connections to servers whose certificate does not verify.",
            ["countersign.site"]),
        MetricDescription(
            "countersign.client.distrust", .counter,
            help: "Connections that a client has closed because it does not trust the local CA.", []),
        MetricDescription(
            "countersign.unreached", .counter, help: "Requests without a connection or a response, by the cause.",
            ["countersign.reason"]),
        MetricDescription(
            "countersign.renewals", .counter, help: "Renewals of certificates, by their result.",
            ["countersign.result", "countersign.identity"]),
        MetricDescription(
            "countersign.reloads", .counter, help: "Changes of the home that were read, by their result.",
            ["countersign.result"]),
        MetricDescription(
            "countersign.events.dropped", .counter, help: "Events that a reader was too slow to receive.", []),
        MetricDescription(
            "countersign.stopped", .gauge, help: "Credentials that are not sent because a site has rejected them.", []),
        MetricDescription(
            "countersign.vault.unlocked", .gauge, help: "1 while the vault is open, otherwise 0.", []),
        MetricDescription(
            "countersign.paused", .gauge, help: "1 while answering is switched off, otherwise 0.", []),
        MetricDescription("countersign.sites", .gauge, help: "Lines of the list of sites.", []),
        MetricDescription(
            "countersign.end", .gauge, name: "countersign_end_timestamp_seconds",
            help: "Unix time at which a certificate or sign-in ends.", ["countersign.kind", "countersign.name"]),
        MetricDescription(
            "countersign.event_loop.lag", .histogram, isDuration: true,
            help: "Delay of a task that was due on an event loop, in seconds.", []),
        MetricDescription(
            "countersign.build", .gauge, name: "countersign_build_info", help: "1, with the version as a label.",
            ["countersign.version"]),
        MetricDescription(
            "process.cpu", .counter, name: "process_cpu_seconds_total",
            help: "Processor time of the process in user and kernel mode, in seconds.", []),
        MetricDescription(
            "process.resident_memory", .gauge, name: "process_resident_memory_bytes",
            help: "Memory of the process that is in RAM, in bytes.", []),
        MetricDescription("process.open_fds", .gauge, help: "Open file descriptors of the process.", []),
        MetricDescription(
            "process.start_time", .gauge, name: "process_start_time_seconds",
            help: "Unix time at which the process started.", []),
    ]
}
