// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The names under which anyone can register a domain. A wildcard of the list must not stand directly before one of
/// them.
package struct PublicSuffixes: Sendable {
    private let rules: SuffixRules

    /// Every single label, and those of ``shortList``.
    package static let builtIn = PublicSuffixes { shortList }

    /// Every single label.
    package static let none = PublicSuffixes(parsing: "")

    /// The format of publicsuffix.org: one rule per line up to the first white space, `//` before comments, `*.` for
    /// any one label, `!` for an exception. Lines that are not names are ignored.
    package init(parsing text: String) {
        self.init { Array(text.utf8) }
    }

    /// From UTF-8 text, which is read in the first look-up of a host with several labels. The full list takes about as
    /// long as everything else that is read when a proxy starts, and most lists of sites never need it.
    package init(reading text: @escaping @Sendable () -> [UInt8]) {
        rules = SuffixRules(reading: text)
    }

    /// Whether the host is a public suffix, or all names directly below it are (`kobe.jp`, because of `*.kobe.jp`). A
    /// single label always is; an address never is.
    package func isPublicSuffix(_ host: HostName) -> Bool {
        guard host.kind == .name else { return false }
        guard let parent = host.parent else { return true }
        let kinds = rules.kinds(of: host.text)
        if kinds.contains(.exception) { return false }
        return !kinds.isDisjoint(with: [.plain, .wildcard]) || rules.kinds(of: parent.text).contains(.wildcard)
    }

    /// The most common suffixes of two labels, for a machine without the full list.
    package static let shortList = Array(
        """
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
        """.split(whereSeparator: \.isWhitespace).joined(separator: "\n").utf8)
}

/// The rules of a list. A part is parsed when a look-up first needs it.
private final class SuffixRules: Sendable {
    private struct State {
        /// Nil once it has been parsed.
        var text: (@Sendable () -> [UInt8])?
        var names = SuffixTable(over: [])
        /// The rules that are not ASCII, which only match hosts with an `xn--` label. Converting them takes as long as
        /// parsing all other rules.
        var waiting: [String] = []
        var international = SuffixTable(over: [])
    }

    private let state: Mutex<State>

    init(reading text: @escaping @Sendable () -> [UInt8]) { state = Mutex(State(text: text)) }

    func kinds(of name: String) -> SuffixTable.Kinds {
        let isInternational = name.utf8.split(separator: UInt8(ascii: ".")).contains { $0.starts(with: "xn--".utf8) }
        return state.withLock { state in
            if let text = state.text {
                state.text = nil
                (state.names, state.waiting) = Self.parse(text())
            }
            guard isInternational else { return state.names.kinds(of: name) }
            for word in state.waiting { state.international.insertRule(word) }
            state.waiting = []
            return state.names.kinds(of: name).union(state.international.kinds(of: name))
        }
    }

    /// ASCII rules are checked byte by byte, and the table refers to them in place. The others are returned.
    private static func parse(_ text: [UInt8]) -> (names: SuffixTable, waiting: [String]) {
        var names = SuffixTable(over: text)
        var waiting: [String] = []
        text.withUnsafeBufferPointer { text in
            var position = 0
            while let line = SuffixLine(in: text, at: &position) {
                if let (name, kinds) = line.rule(in: text) {
                    names.insert(name, as: kinds)
                    continue
                }
                let word = line.firstWord(in: text)
                if word.utf8.allSatisfy({ $0 < 0x80 }) {
                    names.insertRule(word)
                } else {
                    waiting.append(word)
                }
            }
        }
        return (names, waiting)
    }
}

extension SuffixTable {
    /// Inserts a rule from untrusted text; ignores it if it is not a name.
    fileprivate mutating func insertRule(_ rule: String) {
        if rule.hasPrefix("//") {
            return
        } else if rule.hasPrefix("!") {
            insert(canonicalizing: rule.dropFirst(), as: .exception)
        } else if rule.hasPrefix("*.") {
            insert(canonicalizing: rule.dropFirst(2), as: .wildcard)
        } else {
            insert(canonicalizing: rule[...], as: .plain)
        }
    }

    private mutating func insert(canonicalizing name: Substring, as kinds: Kinds) {
        guard let name = try? HostName(canonicalizing: name, for: .forwarded) else { return }
        insert(name.text, as: kinds)
    }
}
