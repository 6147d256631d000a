// SPDX-License-Identifier: Apache-2.0

/// Binds an answer to the TLS connection that carries it (RFC 5929), so that it is invalid on any other connection.
package struct ChannelBinding: Equatable, Sendable {
    /// The channel-binding data including its prefix, for `gss_channel_bindings_struct.application_data`.
    package let applicationData: [UInt8]

    /// `tls-server-end-point` (RFC 5929 §4): the hash of the origin's certificate. §4.1 specifies the hash function.
    package static func tlsServerEndPoint(certificateHash: [UInt8]) -> ChannelBinding {
        ChannelBinding(applicationData: Array("tls-server-end-point:".utf8) + certificateHash)
    }
}
