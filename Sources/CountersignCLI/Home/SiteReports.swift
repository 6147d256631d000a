// SPDX-License-Identifier: Apache-2.0

import CountersignHome

/// Warnings about the allowed-sites list of a home.
enum SiteReports {
    static func noneListed(in home: Home) {
        ListOptions.empty(
            "no site is listed", in: home, hint: "`countersign sites add https://git.corp.example` lists one")
    }

    static func write(_ diagnostics: [Diagnostic]) {
        for diagnostic in diagnostics { Console.warning(diagnostic.message, hint: diagnostic.hint) }
    }
}
