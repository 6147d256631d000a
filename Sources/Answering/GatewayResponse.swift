// SPDX-License-Identifier: Apache-2.0

/// A response that a gateway may have made without the origin (RFC 9110 §15.6.3 to §15.6.5): it says nothing about an
/// answer.
package enum GatewayResponse {
    package static func includes(status: Int) -> Bool { (502...504).contains(status) }
}
