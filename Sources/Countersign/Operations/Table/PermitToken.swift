// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
import CountersignHome

/// Permits that the access token of a sign-in is given out, or withdraws that. Returns whether that is a change.
package struct PermitToken: VaultOperation {
    package static let name = "permitToken"
    private let name: String
    private let isPermitted: Bool

    package init(name: String, isPermitted: Bool) {
        self.name = name
        self.isPermitted = isPermitted
    }

    package func change(_ result: Named<Bool>) -> String? {
        guard result.done == true else { return nil }
        return "\(isPermitted ? "permitted" : "denied") to give out the access token of \(name.debugDescription)"
    }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> Named<Bool> {
        guard let open = vault.vault else { return .unknown(known: []) }
        let time = vault.now()
        return try open.update { contents in
            guard contents.signIns[name] != nil else { return .unknown(known: Set(contents.signIns.keys)) }
            guard isPermitted else { return .done(contents.denyToken(of: name)) }
            let isNew = contents.tokenPermissions[name] == nil
            try contents.permitToken(of: name, at: time)
            return .done(isNew)
        }
    }
}
