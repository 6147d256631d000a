// SPDX-License-Identifier: Apache-2.0

/// Every SPNEGO token of either side after the first. RFC 4178 §4.2.2.
package struct NegTokenResp: Equatable, Sendable {
    package enum State: UInt8, Sendable {
        case acceptCompleted = 0
        case acceptIncomplete = 1
        case reject = 2
        case requestMIC = 3
    }

    package var negState: State?
    /// An object identifier as DER content.
    package var supportedMech: [UInt8]?
    package var responseToken: [UInt8]?
    package var mechListMIC: [UInt8]?

    package init(negState: State?, supportedMech: [UInt8]? = nil, responseToken: [UInt8]?, mechListMIC: [UInt8]? = nil)
    {
        self.negState = negState
        self.supportedMech = supportedMech
        self.responseToken = responseToken
        self.mechListMIC = mechListMIC
    }

    package init(parsing bytes: [UInt8]) throws(SPNEGOError) {
        guard bytes.count <= NegTokenInit.limitBytes else {
            throw SPNEGOError(.malformed, "SPNEGO token of \(bytes.count) bytes exceeds \(NegTokenInit.limitBytes)")
        }
        var outer = DER.Reader(bytes[...])
        var choice = DER.Reader(try outer.take(DER.context(1), named: "NegTokenResp"))
        try outer.finish("NegTokenResp")
        var fields = DER.Reader(try choice.take(DER.sequence, named: "NegTokenResp"))
        try choice.finish("NegTokenResp")
        if let state = try fields.takeOptional(DER.enumerated, inside: DER.context(0), named: "negState") {
            guard state.count == 1, let value = state.first, let known = State(rawValue: value) else {
                throw SPNEGOError(.malformed, "SPNEGO: negState is none of the four")
            }
            negState = known
        } else {
            negState = nil
        }
        supportedMech = try fields.takeOptional(
            DER.objectIdentifier, inside: DER.context(1), named: "supportedMech"
        ).map(Array.init)
        responseToken = try fields.takeOptional(
            DER.octetString, inside: DER.context(2), named: "responseToken"
        ).map(Array.init)
        mechListMIC = try fields.takeOptional(
            DER.octetString, inside: DER.context(3), named: "mechListMIC"
        ).map(Array.init)
        try fields.finish("NegTokenResp")
    }

    package var serialized: [UInt8] {
        var fields: [UInt8] = []
        if let negState {
            fields += DER.encode(DER.context(0), DER.encode(DER.enumerated, [negState.rawValue]))
        }
        if let supportedMech {
            fields += DER.encode(DER.context(1), DER.encode(DER.objectIdentifier, supportedMech))
        }
        if let responseToken {
            fields += DER.encode(DER.context(2), DER.encode(DER.octetString, responseToken))
        }
        if let mechListMIC {
            fields += DER.encode(DER.context(3), DER.encode(DER.octetString, mechListMIC))
        }
        return DER.encode(DER.context(1), DER.encode(DER.sequence, fields))
    }
}
