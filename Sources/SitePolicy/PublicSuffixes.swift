// SPDX-License-Identifier: Apache-2.0

/// The names below which anybody may register one: no wildcard of the list may stand right before them.
package struct PublicSuffixes: Sendable {
    private var plain: Set<String> = []
    private var wildcards: Set<String> = []
    private var exceptions: Set<String> = []

    /// Every single label, and the suffixes of two labels under which most sites live. For a machine without the full
    /// list.
    package static let builtIn = PublicSuffixes(parsing: shortList)

    /// Single labels alone.
    package static let none = PublicSuffixes(parsing: "")

    /// The format of publicsuffix.org: a rule a line up to the first white space, `//` before comments, `*.` for any
    /// one label, `!` for an exception. A line that is not a name is passed over.
    package init(parsing text: String) {
        for line in text.unicodeScalars.split(whereSeparator: { $0 == "\n" || $0 == "\r" }) {
            guard let word = line.split(whereSeparator: \.properties.isWhitespace).first else { continue }
            let rule = Substring(word)
            if rule.hasPrefix("//") {
                continue
            } else if rule.hasPrefix("!") {
                Self.insert(rule.dropFirst(), into: &exceptions)
            } else if rule.hasPrefix("*.") {
                Self.insert(rule.dropFirst(2), into: &wildcards)
            } else {
                Self.insert(rule, into: &plain)
            }
        }
    }

    /// Whether the host is itself a public suffix, or has nothing but public suffixes right below it (`kobe.jp`, for
    /// `*.kobe.jp`). A single label always is; an address never.
    package func isPublicSuffix(_ host: HostName) -> Bool {
        guard host.kind == .name else { return false }
        guard let parent = host.parent else { return true }
        if exceptions.contains(host.text) { return false }
        return plain.contains(host.text) || wildcards.contains(host.text) || wildcards.contains(parent.text)
    }

    /// Static, because a method's own copy of `self` would have the set copied at each of some 10,000 rules.
    private static func insert(_ rule: Substring, into rules: inout Set<String>) {
        guard let name = try? HostName(canonicalizing: rule, for: .forwarded) else { return }
        rules.insert(name.text)
    }

    private static let shortList = """
        *.bd *.ck !www.ck *.fk *.jm *.kh *.mm *.np *.pg
        ac.at co.at or.at ac.be com.ar com.au edu.au gov.au id.au net.au org.au com.br gov.br net.br org.br
        com.cn edu.cn gov.cn net.cn org.cn com.co com.cy com.do com.ec com.eg com.es org.es com.gh com.gr
        com.gt com.hk edu.hk gov.hk net.hk org.hk co.hu co.id go.id or.id ac.il co.il gov.il org.il ac.in co.in
        edu.in gov.in net.in org.in ac.jp ad.jp co.jp ed.jp go.jp gr.jp lg.jp ne.jp or.jp ac.ke co.ke or.ke ac.kr
        co.kr go.kr ne.kr or.kr com.kw com.lb com.lk co.ma com.mt com.mx gob.mx org.mx com.my gov.my
        com.na com.ng gov.ng com.ni ac.nz co.nz geek.nz govt.nz net.nz org.nz com.om com.pa com.pe gob.pe com.ph
        gov.ph com.pk gov.pk com.pl edu.pl gov.pl net.pl org.pl com.pt com.py com.qa com.ro com.ru org.ru com.sa
        gov.sa com.sg edu.sg gov.sg org.sg com.sv ac.th co.th go.th in.th or.th com.tn com.tr edu.tr gov.tr org.tr
        com.tw edu.tw gov.tw org.tw co.tz com.ua gov.ua in.ua org.ua co.ug ac.uk co.uk gov.uk ltd.uk me.uk net.uk
        nhs.uk org.uk plc.uk police.uk com.uy co.uz com.ve com.vn edu.vn gov.vn net.vn org.vn ac.za co.za
        gov.za net.za org.za web.za co.zm co.zw eu.com uk.com us.com de.com jpn.com co.com
        appspot.com azurestaticapps.net
        azurewebsites.net blogspot.com cloudapp.net cloudfront.net
        cloudfunctions.net duckdns.org dyndns.org firebaseapp.com fly.dev
        github.io githubusercontent.com gitlab.io glitch.me herokuapp.com netlify.app
        ngrok.io no-ip.org onrender.com pages.dev r2.dev readthedocs.io repl.co run.app
        s3.amazonaws.com translate.goog vercel.app vercel.dev web.app workers.dev
        """.split(whereSeparator: \.isWhitespace).joined(separator: "\n")
}
