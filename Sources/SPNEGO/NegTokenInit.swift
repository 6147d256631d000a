// SPDX-License-Identifier: Apache-2.0

/// SPNEGO's first token: the client's mechanisms and the first mechanism's token. RFC 4178 §4.2.1.
///
/// Only the original form is parsed and written. reqFlags and mechListMIC are skipped, and so are the negHints of
/// MS-SPNG, which only servers send.
package struct NegTokenInit: Equatable, Sendable {
    /// 64 KiB for the mechanism's token, and its envelope.
    package static let limitBytes = 65_536 + 256

    /// Object identifiers as DER contents, in order of preference.
    package var mechTypes: [[UInt8]]
    package var mechToken: [UInt8]?

    package init(mechTypes: [[UInt8]], mechToken: [UInt8]?) {
        self.mechTypes = mechTypes
        self.mechToken = mechToken
    }

    package init(parsing bytes: [UInt8]) throws(SPNEGOError) {
        guard bytes.count <= Self.limitBytes else {
            throw SPNEGOError(.malformed, "SPNEGO token of \(bytes.count) bytes exceeds \(Self.limitBytes)")
        }
        var outer = DER.Reader(bytes[...])
        var token = DER.Reader(try outer.take(DER.initialContextToken, named: "InitialContextToken"))
        try outer.finish("InitialContextToken")
        guard Array(try token.take(DER.objectIdentifier, named: "thisMech")) == MechanismOID.spnego else {
            throw SPNEGOError(.unsupported, "the token is not SPNEGO's")
        }
        var choice = DER.Reader(try token.take(DER.context(0), named: "NegTokenInit"))
        try token.finish("NegTokenInit")
        var fields = DER.Reader(try choice.take(DER.sequence, named: "NegTokenInit"))
        try choice.finish("NegTokenInit")
        guard let list = try fields.takeOptional(DER.sequence, inside: DER.context(0), named: "mechTypes") else {
            throw SPNEGOError(.malformed, "SPNEGO: mechTypes is missing")
        }
        var types = DER.Reader(list)
        mechTypes = []
        while types.nextTag != nil {
            mechTypes.append(Array(try types.take(DER.objectIdentifier, named: "mechTypes")))
        }
        _ = try fields.takeOptional(DER.context(1), named: "reqFlags")
        mechToken = try fields.takeOptional(DER.octetString, inside: DER.context(2), named: "mechToken").map(Array.init)
        _ = try fields.takeOptional(DER.context(3), named: "mechListMIC")
        try fields.finish("NegTokenInit")
    }

    /// The encoded MechTypeList, over which mechListMIC is computed (RFC 4178 §5).
    package var mechTypeList: [UInt8] {
        DER.encode(DER.sequence, mechTypes.flatMap { DER.encode(DER.objectIdentifier, $0) })
    }

    package var serialized: [UInt8] {
        var fields = DER.encode(DER.context(0), mechTypeList)
        if let mechToken {
            fields += DER.encode(DER.context(2), DER.encode(DER.octetString, mechToken))
        }
        let choice = DER.encode(DER.context(0), DER.encode(DER.sequence, fields))
        return DER.encode(
            DER.initialContextToken, DER.encode(DER.objectIdentifier, MechanismOID.spnego) + choice)
    }
}
