// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

@testable import CountersignParents

func host(_ text: String) -> HostName {
    guard let name = try? HostName(canonicalizing: text, for: .forwarded) else { fatalError("\(text) is not a host") }
    return name
}

func proxy(_ kind: ParentProxy.Kind, _ name: String, _ port: UInt16) -> ParentProxy {
    ParentProxy(kind, host(name), port)
}

func origin(_ url: String) throws -> Origin { try Origin(url: url) }

/// The error of `body`; nil if it succeeds.
func parentsError<Value>(_ body: () throws(ParentsError) -> Value) -> ParentsError? {
    do {
        _ = try body()
        return nil
    } catch {
        return error
    }
}

let start = ContinuousClock.now
