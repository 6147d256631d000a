// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignAddresses

/// `--site` and `--refused`, for commands that show requests.
struct LogFilterOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Only requests to this host, or to this HOST:PORT; *.corp.example for the hosts below it.",
            valueName: "site"))
    var site: String?

    @Flag(help: "Only requests that the proxy refused, or whose challenge it left to the client.")
    var refused = false

    func validate() throws { _ = try filter() }

    func filter() throws -> LogFilter {
        do throws(HostNameError) {
            return LogFilter(
                site: try site.map { text throws(HostNameError) in
                    try LogFilter.Site(parsing: text)
                }, isRefusedOnly: refused)
        } catch {
            throw ValidationError("--site: \(error.detail)")
        }
    }
}
