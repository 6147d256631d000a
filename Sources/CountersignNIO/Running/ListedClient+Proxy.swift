// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignProxy

extension ListedClient {
    /// One for each program and what else tells clients apart, sorted by process. Nil if they are not known.
    static func all(_ clients: [ConnectedClient]?) -> [ListedClient]? {
        struct Kind: Hashable {
            let pid: Int32?
            let words: [String]
        }
        guard let clients else { return nil }
        let groups = Dictionary(grouping: clients) { Kind(pid: $0.facts.pid, words: $0.facts.words.map(\.description)) }
        return groups.sorted { left, right in
            (left.key.pid ?? 0, left.key.words.joined()) < (right.key.pid ?? 0, right.key.words.joined())
        }.map { kind, clients in
            ListedClient(
                pid: kind.pid, uid: clients[0].facts.uid, program: clients[0].facts.executable?.path,
                words: kind.words, connections: clients.count, sites: Set(clients.compactMap(\.site)).sorted())
        }
    }
}
