// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

extension SecretService {
    /// A session of the API, for one operation.
    struct Session {
        private let conversation: BusConversation
        private let attributes: [(String, String)]
        private let path: String

        init(
            on connection: BusConnection, _ attributes: [(String, String)], until deadline: ContinuousClock.Instant
        ) throws(SecretServiceError) {
            do throws(BusCallError) {
                conversation = try BusConversation(on: connection, until: deadline)
            } catch {
                throw SecretServiceError(error, in: "Hello")
            }
            self.attributes = attributes
            let reply = try conversation.ask("OpenSession", of: Self.root, [.text("plain"), .variant(.text(""))])
            guard reply.count == 2, let path = reply[1].path else { throw .malformed("OpenSession") }
            self.path = path
        }

        private static let interface = "org.freedesktop.Secret"
        private static let root = BusConversation.Target(
            service: name, path: "/org/freedesktop/secrets", interface: "\(interface).Service")
        /// The path that stands for no object.
        private static let none = "/"

        func store(_ secret: Secret, label: String) throws(SecretServiceError) {
            guard let collection = try conversation.ask("ReadAlias", of: Self.root, [.text("default")]).first?.path
            else {
                throw .malformed("ReadAlias")
            }
            guard collection != Self.none else {
                throw SecretServiceError(
                    .missing, "the keyring has no default collection",
                    hint: "sign in to your desktop once, or create one with its program for passwords, such as Seahorse"
                )
            }
            try unlock(collection)
            let properties = BusValue.array(
                of: "{sv}",
                [
                    .member(.text("\(Self.interface).Item.Label"), .variant(.text(label))),
                    .member(.text("\(Self.interface).Item.Attributes"), .variant(.dictionary(attributes))),
                ])
            let value = BusValue.structure([
                .path(path), .bytes(Secret([])), .bytes(secret), .text("text/plain; charset=utf8"),
            ])
            let created = try conversation.ask(
                "CreateItem", of: object(collection, "Collection"), [properties, value, .bool(true)])
            guard created.count == 2, let prompt = created[1].path else { throw .malformed("CreateItem") }
            try complete(prompt)
        }

        func secret() throws(SecretServiceError) -> Secret {
            guard let item = try items().first else {
                throw SecretServiceError(
                    .missing, "the keyring has no entry for it: \(attributes.map(\.1).joined(separator: " "))")
            }
            try unlock(item)
            let reply = try conversation.ask("GetSecret", of: object(item, "Item"), [.path(path)])
            guard case .structure(let parts) = reply.first, parts.count == 4, case .bytes(let secret) = parts[2] else {
                throw .malformed("GetSecret")
            }
            return secret
        }

        func remove() throws(SecretServiceError) -> Bool {
            let items = try items()
            for item in items {
                try unlock(item)
                let reply = try conversation.ask("Delete", of: object(item, "Item"))
                guard let prompt = reply.first?.path else { throw .malformed("Delete") }
                try complete(prompt)
            }
            return !items.isEmpty
        }

        /// Unlocked ones first.
        private func items() throws(SecretServiceError) -> [String] {
            let found = try conversation.ask("SearchItems", of: Self.root, [.dictionary(attributes)])
            guard found.count == 2, let unlocked = found[0].paths, let locked = found[1].paths else {
                throw .malformed("SearchItems")
            }
            return unlocked + locked
        }

        /// Unlocks a collection, or an item with its collection; the person may have to type the keyring's password.
        private func unlock(_ path: String) throws(SecretServiceError) {
            let reply = try conversation.ask("Unlock", of: Self.root, [.array(of: "o", [.path(path)])])
            guard reply.count == 2, let prompt = reply[1].path else { throw .malformed("Unlock") }
            try complete(prompt)
        }

        /// Has the person asked what is to be asked.
        private func complete(_ prompt: String) throws(SecretServiceError) {
            guard prompt != Self.none else { return }
            let object = object(prompt, "Prompt")
            let result: [BusValue]
            do throws(BusCallError) {
                try conversation.watch(object)
                // The text is the identifier of a window to be above.
                _ = try conversation.call("Prompt", of: object, [.text("")])
                result = try conversation.signal("Completed", of: object)
            } catch {
                throw error == .timedOut ? .stayedLocked(.timedOut, "in time") : SecretServiceError(error, in: "Prompt")
            }
            guard result.first?.bool == false else { throw .stayedLocked(.declined, "when it asked") }
        }

        private func object(_ path: String, _ kind: String) -> BusConversation.Target {
            BusConversation.Target(service: SecretService.name, path: path, interface: "\(Self.interface).\(kind)")
        }
    }
}

extension BusConversation {
    /// Calls a method of the keyring.
    fileprivate func ask(
        _ method: String, of target: Target, _ arguments: [BusValue] = []
    ) throws(SecretServiceError) -> [BusValue] {
        do throws(BusCallError) {
            return try call(method, of: target, arguments)
        } catch {
            throw SecretServiceError(error, in: method)
        }
    }
}
