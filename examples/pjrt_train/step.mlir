// One step of a bigram model in StableHLO: the next token from this one, through 32 numbers.
//
// Takes both weights and a packed batch, gives both weights after a step of gradient descent, and the mean loss of its
// real pairs. A pair is two tokens of one segment; segment 0 is padding. Shapes are fixed, so it is compiled once.
module @step {
  func.func public @main(
      %embed: tensor<4096x32xf32>, %unembed: tensor<32x4096xf32>, %tokens: tensor<8x64xi32>, %segments: tensor<8x64xi32>
  ) -> (tensor<4096x32xf32>, tensor<32x4096xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %padding = stablehlo.constant dense<0> : tensor<8x63xi32>

    // Pairs of neighbours, and which of them count.
    %here = stablehlo.slice %tokens [0:8, 0:63] : (tensor<8x64xi32>) -> tensor<8x63xi32>
    %next = stablehlo.slice %tokens [0:8, 1:64] : (tensor<8x64xi32>) -> tensor<8x63xi32>
    %segment_here = stablehlo.slice %segments [0:8, 0:63] : (tensor<8x64xi32>) -> tensor<8x63xi32>
    %segment_next = stablehlo.slice %segments [0:8, 1:64] : (tensor<8x64xi32>) -> tensor<8x63xi32>
    %same = stablehlo.compare EQ, %segment_here, %segment_next : (tensor<8x63xi32>, tensor<8x63xi32>) -> tensor<8x63xi1>
    %filled = stablehlo.compare NE, %segment_next, %padding : (tensor<8x63xi32>, tensor<8x63xi32>) -> tensor<8x63xi1>
    %counts = stablehlo.and %same, %filled : tensor<8x63xi1>
    %counts_flat = stablehlo.reshape %counts : (tensor<8x63xi1>) -> tensor<504xi1>
    %weight = stablehlo.convert %counts_flat : (tensor<504xi1>) -> tensor<504xf32>
    %pairs = stablehlo.reduce(%weight init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<504xf32>, tensor<f32>) -> tensor<f32>
    %divisor = stablehlo.maximum %pairs, %one : tensor<f32>

    // Tokens as rows with a single 1.
    %ids = stablehlo.iota dim = 1 : tensor<504x4096xi32>
    %here_flat = stablehlo.reshape %here : (tensor<8x63xi32>) -> tensor<504xi32>
    %here_wide = stablehlo.broadcast_in_dim %here_flat, dims = [0] : (tensor<504xi32>) -> tensor<504x4096xi32>
    %is_here = stablehlo.compare EQ, %ids, %here_wide : (tensor<504x4096xi32>, tensor<504x4096xi32>) -> tensor<504x4096xi1>
    %x = stablehlo.convert %is_here : (tensor<504x4096xi1>) -> tensor<504x4096xf32>
    %next_flat = stablehlo.reshape %next : (tensor<8x63xi32>) -> tensor<504xi32>
    %next_wide = stablehlo.broadcast_in_dim %next_flat, dims = [0] : (tensor<504xi32>) -> tensor<504x4096xi32>
    %is_next = stablehlo.compare EQ, %ids, %next_wide : (tensor<504x4096xi32>, tensor<504x4096xi32>) -> tensor<504x4096xi1>
    %y = stablehlo.convert %is_next : (tensor<504x4096xi1>) -> tensor<504x4096xf32>

    // The loss: cross-entropy of the softmax.
    %hidden = stablehlo.dot_general %x, %embed, contracting_dims = [1] x [0]
        : (tensor<504x4096xf32>, tensor<4096x32xf32>) -> tensor<504x32xf32>
    %logits = stablehlo.dot_general %hidden, %unembed, contracting_dims = [1] x [0]
        : (tensor<504x32xf32>, tensor<32x4096xf32>) -> tensor<504x4096xf32>
    %highest = stablehlo.reduce(%logits init: %lowest) applies stablehlo.maximum across dimensions = [1]
        : (tensor<504x4096xf32>, tensor<f32>) -> tensor<504xf32>
    %highest_wide = stablehlo.broadcast_in_dim %highest, dims = [0] : (tensor<504xf32>) -> tensor<504x4096xf32>
    %shifted = stablehlo.subtract %logits, %highest_wide : tensor<504x4096xf32>
    %exponentials = stablehlo.exponential %shifted : tensor<504x4096xf32>
    %sum = stablehlo.reduce(%exponentials init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<504x4096xf32>, tensor<f32>) -> tensor<504xf32>
    %log_sum = stablehlo.log %sum : tensor<504xf32>
    %of_next = stablehlo.multiply %shifted, %y : tensor<504x4096xf32>
    %score = stablehlo.reduce(%of_next init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<504x4096xf32>, tensor<f32>) -> tensor<504xf32>
    %losses = stablehlo.subtract %log_sum, %score : tensor<504xf32>
    %counted = stablehlo.multiply %losses, %weight : tensor<504xf32>
    %total = stablehlo.reduce(%counted init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<504xf32>, tensor<f32>) -> tensor<f32>
    %loss = stablehlo.divide %total, %divisor : tensor<f32>

    // Its gradient, and the step.
    %sum_wide = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<504xf32>) -> tensor<504x4096xf32>
    %probabilities = stablehlo.divide %exponentials, %sum_wide : tensor<504x4096xf32>
    %difference = stablehlo.subtract %probabilities, %y : tensor<504x4096xf32>
    %divisor_wide = stablehlo.broadcast_in_dim %divisor, dims = [] : (tensor<f32>) -> tensor<504xf32>
    %share = stablehlo.divide %weight, %divisor_wide : tensor<504xf32>
    %share_wide = stablehlo.broadcast_in_dim %share, dims = [0] : (tensor<504xf32>) -> tensor<504x4096xf32>
    %d_logits = stablehlo.multiply %difference, %share_wide : tensor<504x4096xf32>
    %d_unembed = stablehlo.dot_general %hidden, %d_logits, contracting_dims = [0] x [0]
        : (tensor<504x32xf32>, tensor<504x4096xf32>) -> tensor<32x4096xf32>
    %d_hidden = stablehlo.dot_general %d_logits, %unembed, contracting_dims = [1] x [1]
        : (tensor<504x4096xf32>, tensor<32x4096xf32>) -> tensor<504x32xf32>
    %d_embed = stablehlo.dot_general %x, %d_hidden, contracting_dims = [0] x [0]
        : (tensor<504x4096xf32>, tensor<504x32xf32>) -> tensor<4096x32xf32>
    %rate_embed = stablehlo.constant dense<10.0> : tensor<4096x32xf32>
    %rate_unembed = stablehlo.constant dense<10.0> : tensor<32x4096xf32>
    %step_embed = stablehlo.multiply %rate_embed, %d_embed : tensor<4096x32xf32>
    %step_unembed = stablehlo.multiply %rate_unembed, %d_unembed : tensor<32x4096xf32>
    %new_embed = stablehlo.subtract %embed, %step_embed : tensor<4096x32xf32>
    %new_unembed = stablehlo.subtract %unembed, %step_unembed : tensor<32x4096xf32>
    return %new_embed, %new_unembed, %loss : tensor<4096x32xf32>, tensor<32x4096xf32>, tensor<f32>
  }
}
