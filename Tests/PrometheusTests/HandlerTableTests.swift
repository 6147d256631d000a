// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignPrometheus

@Suite struct HandlerTableTests {
    private struct Key: HandlerKey {
        let number: Int
        let hash: UInt64
    }

    /// Whether each of the keys, one after the other, gets a handler that is made for it.
    private static func made(_ keys: [Key]) -> [Bool] {
        let table = HandlerTable<Key, Int>()
        return keys.map { key in
            var isMade = false
            let handler = table.handler(key) {
                isMade = true
                return key.number
            }
            #expect(handler == key.number)
            return isMade
        }
    }

    @Test func keysOfOneHashHaveTheirOwnHandlers() {
        let keys = [Key(number: 1, hash: 7), Key(number: 2, hash: 7), Key(number: 3, hash: 7 + 1_024)]
        #expect(Self.made(keys + keys) == [true, true, true, false, false, false])
    }

    @Test func theTableIsBounded() {
        let keys = (0..<4_000).map { Key(number: $0, hash: UInt64($0)) }
        #expect(Self.made(keys + [keys[0]]).last == false)
        let beyond = Key(number: 4_000, hash: .max)
        #expect(Self.made(keys + [beyond, keys[0], beyond]).suffix(3) == [true, true, false])
    }

    @Test func sitesAreSpread() {
        let sites = (0..<100).map { "AllowedSites/work.sites:\($0)" }
        let keys = sites.map { RequestKey(method: "GET", status: 200, decision: "forward", site: $0) }
        #expect(Set(keys.map { $0.hash % 1_024 }).count > 80)
        let words = (0..<40).map { String(repeating: "a", count: $0) }
        #expect(Set(words.map { CounterKey(.answers, $0).hash }).count == 40)
    }
}
