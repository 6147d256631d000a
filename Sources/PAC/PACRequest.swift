// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import Glibc

/// The time for a script.
package struct ScriptClock: Hashable, Sendable {
    /// Since 1970 in UTC.
    package let milliseconds: Int64
    /// The local time's distance from UTC.
    package let offsetMinutes: Int

    package init(milliseconds: Int64, offsetMinutes: Int) {
        self.milliseconds = milliseconds
        self.offsetMinutes = offsetMinutes
    }

    /// The system's clock and time zone.
    package static func now() -> ScriptClock {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        var parts = tm()
        localtime_r(&time.tv_sec, &parts)
        return ScriptClock(
            milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec / 1_000_000),
            offsetMinutes: parts.tm_gmtoff / 60)
    }
}

/// A host look-up that a script asks for.
package enum PACLookUp: Hashable, Sendable {
    /// All addresses of a name, which is in lower case and otherwise unchecked text of the script.
    case name(String)
    /// All addresses of this machine that other machines may use.
    case ownAddresses
}

/// One call of `FindProxyForURL`, or running the script itself, with the addresses that are known.
struct PACRequest {
    /// Nil for running the script itself.
    var target: (url: String, host: String)?
    var clock: ScriptClock
    /// In RFC 5952's form, without brackets; may be empty.
    var addresses: [PACLookUp: [String]] = [:]
    /// Whether other names have no address.
    var isFull = false

    var text: [UInt8] {
        func list(_ texts: [String]) -> JSONValue { JSONValue(.array(texts.map { JSONValue(.string($0)) })) }
        var names: [JSONMember] = []
        var members = [
            JSONMember("now", JSONValue(.integer(clock.milliseconds))),
            JSONMember("offset", JSONValue(.integer(Int64(clock.offsetMinutes)))),
            JSONMember("isFull", JSONValue(.bool(isFull))),
        ]
        if let target {
            members.append(JSONMember("url", JSONValue(.string(target.url))))
            members.append(JSONMember("host", JSONValue(.string(target.host))))
        }
        for (lookUp, found) in addresses {
            switch lookUp {
            case .name(let name): names.append(JSONMember(name, list(found)))
            case .ownAddresses: members.append(JSONMember("own", list(found)))
            }
        }
        members.append(JSONMember("addresses", JSONValue(.object(names))))
        return Array(JSONValue(.object(members)).serialized.utf8)
    }
}

/// A script's decision.
package struct PACDecision: Hashable, Sendable {
    /// The function's result, unparsed; empty if it was not a string.
    package let result: String
    /// Whether the script has asked for the time.
    package let usesClock: Bool
    /// The arguments of the script's calls of `alert`. For a log.
    package let alerts: [String]

    package init(result: String, usesClock: Bool, alerts: [String]) {
        self.result = result
        self.usesClock = usesClock
        self.alerts = alerts
    }
}
